// Package infra is the lock table as a CDK construct: [NewLockTable] creates a
// table that fits the store as it is, Connect gives a function its name and the
// one permission it needs, and what would break the promises of a lock is said
// when the app is synthesised.
//
//	table := infra.NewLockTable(stack, jsii.String("Locks"), nil)
//	table.Connect(fn, nil)
//	table.Alarms(&infra.AlarmsProps{Topic: topic})
//
// It is a module of its own, so that functions do not depend on the CDK, and
// imports nothing of lambdalock, so that either can be updated alone. The same
// table for CloudFormation, SAM and Terraform is in docs/TABLE.md.
package infra
