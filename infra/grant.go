package infra

import (
	"net/url"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

var (
	// One action covers acquire, renew and release.
	lockActions = []string{"dynamodb:UpdateItem"}

	// What package dynamostore/batching needs besides.
	batchActions = []string{"dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"}

	// The least that shows the locks: one lock by its name, all of them, and
	// whether the table has the right settings. Query is not needed: a table
	// without a sort key has one item per key, which GetItem returns.
	inspectActions = []string{"dynamodb:GetItem", "dynamodb:Scan", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"}

	// What a caller needs on a customer managed key, because DynamoDB uses the key
	// on the caller's behalf:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
	readKeyActions  = []string{"kms:Decrypt", "kms:DescribeKey"}
	writeKeyActions = []string{"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"}
)

// conditions are those of an IAM statement, by operator.
type conditions = map[string]*map[string]any

func (t *lockTable) GrantLock(grantee awsiam.IGrantable, namespace *string) awsiam.Grant {
	return t.grantLock(grantee, onlyIn(namespace, "GrantLock"))
}

func (t *lockTable) GrantLockInBatches(grantee awsiam.IGrantable, namespace *string) awsiam.Grant {
	only := onlyIn(namespace, "GrantLockInBatches")
	grant := t.grantTable(grantee, only, slices.Concat(lockActions, batchActions))
	t.grantKey(grantee, writeKeyActions)
	return grant
}

func (t *lockTable) GrantInspect(grantee awsiam.IGrantable) awsiam.Grant {
	grant := t.grantTable(grantee, nil, inspectActions)
	t.grantKey(grantee, readKeyActions)
	return grant
}

func (t *lockTable) GrantOperate(grantee awsiam.IGrantable) awsiam.Grant {
	grant := t.grantTable(grantee, nil, slices.Concat(inspectActions, lockActions))
	t.grantKey(grantee, writeKeyActions)
	return grant
}

// grantLock allows grantee to lock under conditions; nil means every name.
func (t *lockTable) grantLock(grantee awsiam.IGrantable, only *conditions) awsiam.Grant {
	grant := t.grantTable(grantee, only, lockActions)
	t.grantKey(grantee, writeKeyActions)
	return grant
}

// grantTable allows actions on the table. Table.Grant takes no conditions.
func (t *lockTable) grantTable(grantee awsiam.IGrantable, only *conditions, actions []string) awsiam.Grant {
	return awsiam.Grant_AddToPrincipal(&awsiam.GrantOnPrincipalOptions{
		Grantee:      grantee,
		Actions:      jsii.Strings(actions...),
		ResourceArns: jsii.Strings(*t.table.TableArn()),
		Conditions:   only,
	})
}

// grantKey allows actions on the customer managed key, if there is one.
func (t *lockTable) grantKey(grantee awsiam.IGrantable, actions []string) {
	if t.key != nil {
		t.key.Grant(grantee, *jsii.Strings(actions...)...)
	}
}

// onlyIn returns the conditions of a permission that method grants for a
// namespace; nil for the whole table. It panics if the namespace is a token.
func onlyIn(namespace *string, method string) *conditions {
	only := leadingKeys(namespace)
	if namespace != nil && only == nil {
		panic("lambdalock: " + method + " got a token as the namespace, which cannot be escaped before the deployment: give the text itself, or nil for the whole table")
	}
	return only
}

// leadingKeys returns conditions that limit a permission to the rows of a
// namespace, whose keys begin with it, or nil if the namespace is nil or a
// token, which cannot be escaped as the library escapes names:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
//
// ForAllValues also matches a request without the key, so Null requires the
// key:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
func leadingKeys(namespace *string) *conditions {
	if namespace == nil || *awscdk.Token_IsUnresolved(namespace) {
		return nil
	}
	// Escaping leaves no IAM wildcard: it replaces *, ?, and the { of a policy
	// variable.
	return &conditions{
		"ForAllValues:StringLike": {"dynamodb:LeadingKeys": url.PathEscape(*namespace) + "/*"},
		"Null":                    {"dynamodb:LeadingKeys": "false"},
	}
}
