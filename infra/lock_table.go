package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// LockTable is a DynamoDB table for locks.
type LockTable interface {
	constructs.Construct

	// Table returns the DynamoDB table.
	Table() awsdynamodb.Table

	// Connect lets fn lock in this table. It allows dynamodb:UpdateItem, sets the
	// environment variable LOCK_TABLE_NAME and, if the namespace is known,
	// LOCK_NAMESPACE. If it knows fn's log group, it counts the leases that fn
	// loses. Nil opts means all defaults.
	//
	// Connect panics if fn is already connected to a lock table, or if one of the
	// two variables already has a different value.
	//
	// When the app is synthesised, fn is checked for settings that lose events or
	// locks. What is found becomes warnings about fn, such as
	// [WarnReportBatchItemFailures], or errors. A function in a different Region,
	// account or stage from the table is an error, because it cannot reach the
	// table.
	Connect(fn awslambda.Function, opts *ConnectOptions)

	// GrantLock allows grantee to lock every name in the table, and nothing else:
	// dynamodb:UpdateItem. Use it for roles and users, and Connect for functions.
	GrantLock(grantee awsiam.IGrantable) awsiam.Grant

	// GrantInspect allows grantee, a person or a tool, to read the locks:
	// dynamodb:GetItem, Scan and DescribeTable.
	GrantInspect(grantee awsiam.IGrantable) awsiam.Grant

	// AddAlarms adds alarms for throttling, errors, contention and lost leases. Nil
	// props means all defaults. AddAlarms panics if it is called twice.
	AddAlarms(props *AlarmsProps) *LockAlarms

	// AddDashboard adds a dashboard with the metrics of the alarms, the consumed
	// write units and the latency. Nil props means all defaults. AddDashboard
	// panics if it is called twice.
	AddDashboard(props *DashboardProps) awscloudwatch.Dashboard
}

// LockTableProps changes the defaults of [NewLockTable].
type LockTableProps struct {
	// TableName is the physical name of the table. Nil means that CloudFormation
	// generates one, because it cannot replace a table with a fixed name.
	TableName *string

	// EncryptionKey is a customer managed key that encrypts the table. Everybody
	// who is connected or granted access may also use the key. Nil means a
	// key that AWS owns, because it is free and callers need no permission for it.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html
	EncryptionKey awskms.IKey

	// PointInTimeRecovery keeps backups of the last 35 days. Nil means false,
	// because locks are short-lived and a restored table would bring back old ones.
	PointInTimeRecovery *bool

	// DeletionProtection makes DynamoDB refuse to delete the table. Nil means
	// false, because the default RemovalPolicy already keeps the table.
	DeletionProtection *bool

	// MaxWriteRequestUnits limits the write units per second, and so the cost.
	// Every handled event takes two writes. DynamoDB throttles what exceeds the
	// limit, which costs events their attempts. Nil means no limit but the
	// account's, because a throttled table stops handlers.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode-max-throughput.html
	MaxWriteRequestUnits *float64

	// WarmThroughput is the number of requests per second that the table takes at
	// once, before it has grown with its load. Set WriteUnitsPerSecond to twice the
	// number of events per second in a burst; locking reads nothing. It is paid for
	// once and cannot be lowered. Nil means that of a new on-demand table, because
	// it costs nothing extra: 4,000 writes per second, which is 2,000 events, and
	// 12,000 reads.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
	WarmThroughput *awsdynamodb.WarmThroughput

	// RemovalPolicy decides what happens to the table when it is removed from the
	// stack. Empty means RETAIN, because without the table the duplicates of all
	// completed events would run. DESTROY becomes a warning, [WarnRemovalPolicy].
	RemovalPolicy awscdk.RemovalPolicy
}

type lockTable struct {
	constructs.Construct
	table        awsdynamodb.Table
	key          awskms.IKey // nil without EncryptionKey
	path         string
	resourcePath string  // of the table's resource
	name         *string // physical; nil if CloudFormation generates it
	survey       *survey
	alarms       *LockAlarms // nil before Alarms
	hasDashboard bool
}

// NewLockTable adds a lock table to scope. Nil props means all defaults, which
// fit the store.
func NewLockTable(scope constructs.Construct, id *string, props *LockTableProps) LockTable {
	if props == nil {
		props = &LockTableProps{}
	}
	t := &lockTable{key: props.EncryptionKey, name: props.TableName}
	constructs.NewConstruct_Override(t, scope, id)

	removal := awscdk.RemovalPolicy_RETAIN
	if props.RemovalPolicy != "" {
		removal = props.RemovalPolicy
	}
	var recovery *awsdynamodb.PointInTimeRecoverySpecification
	if props.PointInTimeRecovery != nil {
		recovery = &awsdynamodb.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: props.PointInTimeRecovery}
	}
	// Table instead of TableV2, which makes a global table. Replicas with
	// asynchronous replication evaluate conditions per Region, so they cannot lock:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
	t.table = awsdynamodb.NewTable(t, jsii.String("Table"), &awsdynamodb.TableProps{
		TableName:                        props.TableName,
		PartitionKey:                     &awsdynamodb.Attribute{Name: jsii.String("lock"), Type: awsdynamodb.AttributeType_STRING},
		TimeToLiveAttribute:              jsii.String("deleteAfter"),
		BillingMode:                      awsdynamodb.BillingMode_PAY_PER_REQUEST,
		MaxWriteRequestUnits:             props.MaxWriteRequestUnits,
		WarmThroughput:                   props.WarmThroughput,
		EncryptionKey:                    props.EncryptionKey,
		PointInTimeRecoverySpecification: recovery,
		DeletionProtection:               props.DeletionProtection,
		RemovalPolicy:                    removal,
	})
	t.path, t.resourcePath = *t.Node().Path(), *t.table.Node().DefaultChild().Node().Path()
	t.survey = surveyOf(t)
	onValidation(t, t.checkRemoval)
	return t
}

// checkRemoval warns if the table is deleted with its stack.
func (t *lockTable) checkRemoval() {
	r, ok := t.table.Node().DefaultChild().(awsdynamodb.CfnTable)
	if !ok || r.CfnOptions().DeletionPolicy() != awscdk.CfnDeletionPolicy_DELETE {
		return
	}
	// On the child, because a warning that is acknowledged before it is added is
	// suppressed on the children only.
	awscdk.Annotations_Of(t.table).AddWarningV2(jsii.String(WarnRemovalPolicy), jsii.String(fmt.Sprintf(
		"lambdalock: lock table %s is deleted when it leaves the stack: without it, the duplicates of all completed events run. "+
			"Leave out RemovalPolicy, or acknowledge this warning if that does no harm", t.path)))
}

func (t *lockTable) Table() awsdynamodb.Table { return t.table }
