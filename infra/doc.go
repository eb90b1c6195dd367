// Package infra is a CDK construct for the lock table. [NewLockTable] creates a
// table that fits the store without further settings. Connect gives a function
// the table's name and the one permission it needs. When the app is
// synthesised, every connected function is checked for settings that lose
// events or locks.
//
//	locks := infra.NewLockTable(stack, jsii.String("Locks"), nil)
//	locks.Connect(fn, nil)
//	locks.AddAlarms(&infra.AlarmsProps{Topic: topic})
//
// The package has its own module, so that functions do not depend on the CDK.
// It imports nothing from lambdalock, so that either can be updated alone. The
// files table.yaml, table-sam.yaml and table.tf beside it have the same table
// for CloudFormation, SAM and Terraform.
package infra
