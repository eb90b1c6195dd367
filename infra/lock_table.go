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

// ILockTable is a lock table of this app, or one that
// [LockTable_FromTableName] or [LockTable_FromTableArn] names.
type ILockTable interface {
	constructs.Construct

	// Table returns the DynamoDB table.
	Table() awsdynamodb.ITable

	// Connect lets fn lock in this table, in one namespace. It allows
	// dynamodb:UpdateItem, sets the environment variables LOCK_TABLE_NAME and
	// LOCK_NAMESPACE, and measures what the alarms watch: by metric filters if it
	// knows fn's log group, or by LockTableProps.EMF. Nil opts means all defaults.
	// When the app is synthesised, fn is checked for settings that lose events or
	// locks, which become warnings, such as [WarnReportBatchItemFailures], or
	// errors.
	//
	// An alias or a version stands for its function. What you must set yourself in
	// an imported function becomes a warning. Connect panics if fn is already
	// connected to a lock table, or if one of the two variables already has a
	// different value.
	Connect(fn awslambda.IFunction, opts *ConnectOptions) awsiam.Grant

	// GrantLock allows grantee to lock every name in namespace, and nothing else:
	// dynamodb:UpdateItem. Nil means in all namespaces. Use it for roles and users,
	// and Connect for functions. GrantLock panics if namespace is a token.
	GrantLock(grantee awsiam.IGrantable, namespace *string) awsiam.Grant

	// GrantLockInBatches is GrantLock for code that uses package
	// dynamostore/batching: it also allows dynamodb:PartiQLInsert and
	// PartiQLUpdate. Call it for connected functions too, with the namespace of
	// ConnectOptions. The alarms Throttles and SystemErrors do not count what is
	// sent in batches, and Contention only with LockTableProps.EMF.
	GrantLockInBatches(grantee awsiam.IGrantable, namespace *string) awsiam.Grant

	// GrantInspect allows grantee, a person or a tool, to read the locks and the
	// table's settings: dynamodb:GetItem, Scan, DescribeTable and
	// DescribeTimeToLive.
	GrantInspect(grantee awsiam.IGrantable) awsiam.Grant

	// GrantOperate allows grantee, a person or a tool, to read the locks, to
	// release them and to forget events: as GrantInspect, and dynamodb:UpdateItem.
	GrantOperate(grantee awsiam.IGrantable) awsiam.Grant

	// Metric returns a metric of the connected functions, as the sum of five
	// minutes unless options differ. Without LockTableProps.EMF it is counted in
	// logs, and name is Lost, CompleteFailed, Unlocked, Interrupted, StoreFailed or
	// TakenOver. With it, name is any metric of package telemetry/emf, and options
	// must give the dimension service, which is a function's namespace.
	Metric(name *string, options *awscloudwatch.MetricOptions) awscloudwatch.Metric
}

// LockTable is a DynamoDB table for locks.
type LockTable interface {
	ILockTable

	// AddAlarms adds an alarm for each promise and for each way in which the table
	// fails: Lost, CompleteFailed, Unlocked, Interrupted, StoreFailed, TakenOver,
	// Contention, Throttles and SystemErrors. Those are the ids of the alarms below
	// the table. With LockTableProps.EMF, the first seven are added for every
	// namespace, below its function's child LockTableConnection. Functions that are
	// connected later are watched too. Nil props means all defaults. AddAlarms
	// panics if it is called twice.
	AddAlarms(props *AlarmsProps)

	// AddDashboard adds a dashboard with the metrics and states of the alarms, the
	// consumed write units and the latency; and with LockTableProps.EMF, of the ten
	// namespaces of the account that lead in it, how long claims waited and locks
	// were held. Nil props means all defaults. AddDashboard panics if it is called
	// twice.
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

	// DeletionProtection makes DynamoDB refuse to delete the table, also in the
	// console. Nil means true, unless RemovalPolicy is DESTROY, which could not
	// delete a protected table.
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

	// EMF says that all connected functions write metrics, by the option
	// emf.Metrics of package telemetry/emf without another Service. Then alarms and
	// dashboard take their numbers from these, for every namespace. Nil means
	// false: from log lines, for the whole table, because functions need no option
	// for that. Functions that another app connects get no alarms by EMF: see
	// [LockTable_FromTableName].
	EMF *bool
}

type lockTable struct {
	constructs.Construct
	table         awsdynamodb.ITable
	key           awskms.IKey // nil without EncryptionKey
	path          string
	place         awscdk.ArnComponents // Region and account
	resourcePaths []string             // what may be the table's resource; none if it is of another app
	name          *string              // physical; nil if CloudFormation generates it
	emf           bool
	survey        *survey
	connections   []*connection
	alarms        *AlarmsProps            // nil before AddAlarms
	tableStates   []awscloudwatch.Alarm   // the alarms below the table
	alarmed       map[string]bool         // the namespaces that have alarms
	logGroups     map[string]bool         // those that have metric filters
	dashboard     awscloudwatch.Dashboard // nil before AddDashboard
}

// newLockTable returns a lock table without its DynamoDB table.
func newLockTable(scope constructs.Construct, id *string) *lockTable {
	t := &lockTable{alarmed: map[string]bool{}, logGroups: map[string]bool{}}
	constructs.NewConstruct_Override(t, scope, id)
	stack := awscdk.Stack_Of(t)
	t.path, t.survey, t.place = *t.Node().Path(), surveyOf(t), awscdk.ArnComponents{Region: stack.Region(), Account: stack.Account()}
	return t
}

// LockTable_FromTableName returns the lock table of another app in the stack's
// account and Region. If the table is encrypted with a key of your own, also
// grant the key to everybody who may lock.
//
// The alarms of the other app count the log lines of the functions that you
// connect, if the CDK manages their log groups; no warning says if it does not.
// If the table was made with LockTableProps.EMF, its alarms do not count these
// lines: include alarms/emf.json in your app for each namespace.
func LockTable_FromTableName(scope constructs.Construct, id, tableName *string) ILockTable { //nolint:staticcheck // as the CDK names it
	t := newLockTable(scope, id)
	t.table, t.name = awsdynamodb.Table_FromTableName(t, jsii.String("Table"), tableName), tableName
	t.resourcePaths = referredPaths(tableName)
	return t
}

// LockTable_FromTableArn is like [LockTable_FromTableName], and a function in a
// different account or Region from tableArn's is an error.
func LockTable_FromTableArn(scope constructs.Construct, id, tableArn *string) ILockTable { //nolint:staticcheck // as the CDK names it
	t := newLockTable(scope, id)
	t.table = awsdynamodb.Table_FromTableArn(t, jsii.String("Table"), tableArn)
	t.name, t.place = t.table.TableName(), *awscdk.Arn_Split(tableArn, awscdk.ArnFormat_SLASH_RESOURCE_NAME)
	t.resourcePaths = referredPaths(tableArn)
	return t
}

// NewLockTable adds a lock table to scope, and an output with its name. Nil
// props means all defaults, which fit the store.
func NewLockTable(scope constructs.Construct, id *string, props *LockTableProps) LockTable {
	if props == nil {
		props = &LockTableProps{}
	}
	t := newLockTable(scope, id)
	t.key, t.name, t.emf = props.EncryptionKey, props.TableName, props.EMF != nil && *props.EMF

	removal := awscdk.RemovalPolicy_RETAIN
	if props.RemovalPolicy != "" {
		removal = props.RemovalPolicy
	}
	protection := props.DeletionProtection
	if protection == nil {
		protection = jsii.Bool(removal != awscdk.RemovalPolicy_DESTROY)
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
		DeletionProtection:               protection,
		RemovalPolicy:                    removal,
	})
	t.resourcePaths = []string{*t.table.Node().DefaultChild().Node().Path()}
	awscdk.NewCfnOutput(t, jsii.String("TableName"), &awscdk.CfnOutputProps{
		Value: t.table.TableName(), Description: jsii.String("The lock table, as lambdalock --store dynamodb://NAME takes it"),
	})
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
	addWarning(awscdk.Annotations_Of(t.table), WarnRemovalPolicy, fmt.Sprintf(
		"lambdalock: lock table %s is deleted when it leaves the stack: without it, the duplicates of all completed events run. "+
			"Leave out RemovalPolicy, or acknowledge this warning if that does no harm", t.path))
}

func (t *lockTable) Table() awsdynamodb.ITable { return t.table }
