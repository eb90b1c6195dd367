package infra

import (
	"reflect"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// idPrefix tells the ids from those of other constructs.
const idPrefix = "@lambdalock/infra:"

// The ids of the warnings, for Annotations.AcknowledgeWarning.
const (
	// WarnVisibilityTimeout warns of a queue that delivers a message again while
	// the function still works on it.
	WarnVisibilityTimeout = idPrefix + rules.VisibilityTimeout
	// WarnDeadLetterQueue warns of a queue without a dead-letter queue: a message
	// that always fails comes back until it expires.
	WarnDeadLetterQueue = idPrefix + rules.DeadLetterQueue
	// WarnDeadLetterRetention warns of a dead-letter queue that drops messages with
	// the queue that they came from, or before.
	WarnDeadLetterRetention = idPrefix + rules.DeadLetterRetention
	// WarnMaxReceiveCount warns of a queue that gives up a message whose lock was
	// held once or twice.
	WarnMaxReceiveCount = idPrefix + rules.MaxReceiveCount
	// WarnReportBatchItemFailures warns of an event source mapping that ignores
	// which records of a batch failed.
	WarnReportBatchItemFailures = idPrefix + rules.PartialAnswer
	// WarnRetryLimit warns of a stream that retries a failing record until the
	// record expires, which blocks its shard.
	WarnRetryLimit = idPrefix + rules.RetryLimit
	// WarnFailureDestination warns of a source that loses an event which failed for
	// good.
	WarnFailureDestination = idPrefix + rules.FailureDestination
	// WarnNotCounted warns that alarms do not see the function.
	WarnNotCounted = idPrefix + "notCounted"
	// WarnNoAction warns, at the table, of alarms of which no one is told.
	WarnNoAction = idPrefix + "noAction"
	// WarnVariables warns that the variables of an imported function are yours to
	// set.
	WarnVariables = idPrefix + "variables"
	// WarnLogLevel warns of a log level that drops messages which are counted.
	WarnLogLevel = idPrefix + rules.LogLevel
	// WarnAsyncTimeout warns of asynchronous invocations whose lock, if the process
	// dies, outlives all retries.
	WarnAsyncTimeout = idPrefix + rules.AsyncTimeout
	// WarnEventAge warns of asynchronous invocations that give up an event before
	// its last attempt.
	WarnEventAge = idPrefix + rules.EventAge
	// WarnTumblingWindow warns of an event source mapping that wants a state as its
	// answer.
	WarnTumblingWindow = idPrefix + rules.TumblingWindow
	// WarnConsumptionMode warns of an event source mapping that shares a topic of
	// Kafka with other consumers, record by record.
	WarnConsumptionMode = idPrefix + rules.ConsumptionMode
	// WarnRetryAttempts warns of a source that gives up an event whose lock was
	// held once or twice.
	WarnRetryAttempts = idPrefix + rules.RetryAttempts
	// WarnRetention warns of a source that keeps an event longer than the library
	// remembers by default that it was completed.
	WarnRetention = idPrefix + rules.Retention
	// WarnRemovalPolicy warns, at the table, that it is deleted with its stack.
	WarnRemovalPolicy = idPrefix + "removalPolicy"
	// WarnPermission warns that the function's role did not take the permission to
	// lock.
	WarnPermission = idPrefix + "permission"
	// WarnStrongGlobalTable warns of a strongly consistent global table, which has
	// no TTL and refuses transactions.
	WarnStrongGlobalTable = idPrefix + rules.StrongGlobalTable
)

// addWarning adds a warning that users can acknowledge by its id. It calls
// AddWarningV2, which has got a parameter in a later version of the CDK, in
// such a way that both versions compile.
func addWarning(a awscdk.Annotations, id, text string) {
	add := reflect.ValueOf(a).MethodByName("AddWarningV2")
	args := []reflect.Value{reflect.ValueOf(&id), reflect.ValueOf(&text)}
	if n := len(args); n < add.Type().NumIn() {
		args = append(args, reflect.Zero(add.Type().In(n))) // no options
	}
	add.Call(args)
}
