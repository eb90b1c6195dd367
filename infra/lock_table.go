package infra

import (
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

	// Table is the table itself.
	Table() awsdynamodb.Table

	// Connect lets fn lock in this table: it sets the environment variables
	// LOCK_TABLE_NAME and, if the namespace is known, LOCK_NAMESPACE, allows
	// dynamodb:UpdateItem, and counts the leases that fn loses if its log group is
	// known. When the app is synthesised, fn is checked for settings that lose
	// events or locks, which becomes warnings (such as [WarnPartialAnswer]) and
	// errors about fn. A function can be connected once: a second time panics, and
	// so does one of the variables with another value. A function in another Region,
	// account or stage than the table cannot lock in it, which is an error when the
	// app is synthesised. Nil options are legal.
	Connect(fn awslambda.Function, opts *ConnectOptions)

	// GrantLock allows grantee to lock any name of the table, and nothing else:
	// dynamodb:UpdateItem. For whatever is no function; otherwise use Connect.
	GrantLock(grantee awsiam.IGrantable) awsiam.Grant

	// GrantInspect allows grantee, a person or a tool, to read the locks:
	// dynamodb:GetItem, Scan and DescribeTable.
	GrantInspect(grantee awsiam.IGrantable) awsiam.Grant

	// Alarms adds alarms for what a lock table suffers from. A second call panics.
	// Nil props are legal.
	Alarms(props *AlarmsProps) *LockAlarms

	// Dashboard adds a dashboard of the same metrics. A second call panics. Nil
	// props are legal.
	Dashboard(props *DashboardProps) awscloudwatch.Dashboard
}

// LockTableProps changes the defaults of [NewLockTable].
type LockTableProps struct {
	// TableName is the physical name. Default: one that CloudFormation makes,
	// which allows the table to be replaced.
	TableName *string

	// EncryptionKey is a key of your own; whoever is connected or granted may then
	// use it, too. Default: the key aws/dynamodb of the account, which AWS manages.
	EncryptionKey awskms.IKey

	// PointInTimeRecovery keeps backups of the last 35 days. Default: false. Locks
	// are short-lived, and a restored table remembers old ones.
	PointInTimeRecovery *bool

	// DeletionProtection refuses to delete the table. Default: false.
	DeletionProtection *bool

	// MaxWriteRequestUnits bounds the writes per second, and so the cost. What is
	// above it is throttled, and costs events their attempts. Every handled event
	// takes two writes. Default: no bound but that of the account.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode-max-throughput.html
	MaxWriteRequestUnits *float64

	// WarmThroughput is what the table can do at once, without having grown to it
	// with its load. Give it WriteUnitsPerSecond of twice the events per second that
	// a burst brings; locking reads nothing. It is paid for once, and cannot be
	// lowered. Default: that of a new table on demand, which is 4,000 writes and
	// 12,000 reads per second, and so 2,000 events.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
	WarmThroughput *awsdynamodb.WarmThroughput

	// RemovalPolicy says what becomes of the table when it leaves the stack.
	// Default: RETAIN, because without it every remembered event would run again.
	RemovalPolicy awscdk.RemovalPolicy
}

type lockTable struct {
	constructs.Construct
	table     awsdynamodb.Table
	key       awskms.IKey
	path      string
	place     string  // account and Region
	resource  string  // path of the table's resource
	name      *string // physical; nil if CloudFormation makes it
	survey    *survey
	alarms    *LockAlarms // nil before Alarms
	dashboard bool        // there is one
}

// NewLockTable adds a lock table to scope. It fits the store with no further
// settings. Nil props are legal.
func NewLockTable(scope constructs.Construct, id *string, props *LockTableProps) LockTable {
	if props == nil {
		props = &LockTableProps{}
	}
	t := &lockTable{key: props.EncryptionKey, name: props.TableName}
	constructs.NewConstruct_Override(t, scope, id)

	encryption := awsdynamodb.TableEncryption_AWS_MANAGED
	if props.EncryptionKey != nil {
		encryption = awsdynamodb.TableEncryption_CUSTOMER_MANAGED
	}
	removal := awscdk.RemovalPolicy_RETAIN
	if props.RemovalPolicy != "" {
		removal = props.RemovalPolicy
	}
	var recovery *awsdynamodb.PointInTimeRecoverySpecification
	if props.PointInTimeRecovery != nil {
		recovery = &awsdynamodb.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: props.PointInTimeRecovery}
	}
	// Table, not TableV2: that one makes a global table. Replicas that are written
	// asynchronously evaluate conditions per Region, and are no lock:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
	t.table = awsdynamodb.NewTable(t, jsii.String("Table"), &awsdynamodb.TableProps{
		TableName:                        props.TableName,
		PartitionKey:                     &awsdynamodb.Attribute{Name: jsii.String("lock"), Type: awsdynamodb.AttributeType_STRING},
		TimeToLiveAttribute:              jsii.String("deleteAfter"),
		BillingMode:                      awsdynamodb.BillingMode_PAY_PER_REQUEST,
		MaxWriteRequestUnits:             props.MaxWriteRequestUnits,
		WarmThroughput:                   props.WarmThroughput,
		Encryption:                       encryption,
		EncryptionKey:                    props.EncryptionKey,
		PointInTimeRecoverySpecification: recovery,
		DeletionProtection:               props.DeletionProtection,
		RemovalPolicy:                    removal,
	})
	t.path, t.resource = *t.Node().Path(), *t.table.Node().DefaultChild().Node().Path()
	t.place = *t.table.Stack().Account() + " " + *t.table.Stack().Region()
	t.survey = surveyOf(t)
	t.survey.tables = append(t.survey.tables, t)
	return t
}

func (t *lockTable) Table() awsdynamodb.Table { return t.table }
