// Package rules judges the settings of a function that locks, of what invokes
// it, and of its lock table: which of them lose events or locks. The construct
// in package infra reads them from an app, and the command lambdalock doctor
// from what is deployed.
package rules

// Finding is a setting that loses events or locks.
type Finding struct {
	ID   string // such as [VisibilityTimeout]
	Text string // what is wrong, what comes of it, and what to change
	// Fatal reports whether two callers can hold one lock. Other findings may do
	// no harm, depending on the handler.
	Fatal bool
}

// The ids of the findings.
const (
	// VisibilityTimeout is a queue that delivers a message again while the function
	// still works on it.
	VisibilityTimeout = "visibilityTimeout"
	// DeadLetterQueue is a queue without a dead-letter queue.
	DeadLetterQueue = "deadLetterQueue"
	// DeadLetterRetention is a dead-letter queue that drops messages with, or
	// before, the queue that they came from.
	DeadLetterRetention = "deadLetterRetention"
	// MaxReceiveCount is a queue that gives up a message whose lock was held once
	// or twice.
	MaxReceiveCount = "maxReceiveCount"
	// PartialAnswer is an event source mapping that ignores which records of a
	// batch failed.
	PartialAnswer = "partialAnswer"
	// RetryLimit is a stream that retries a failing record until it expires.
	RetryLimit = "retryLimit"
	// RetryAttempts is a source that gives up an event whose lock was held once or
	// twice.
	RetryAttempts = "retryAttempts"
	// Retention is a source that keeps an event longer than the library remembers
	// by default that it was completed.
	Retention = "retention"
	// FailureDestination is a source that loses an event which failed for good.
	FailureDestination = "failureDestination"
	// AsyncTimeout are asynchronous invocations whose lock, if the process dies,
	// outlives all retries.
	AsyncTimeout = "asyncTimeout"
	// EventAge are asynchronous invocations that give up an event before its last
	// attempt.
	EventAge = "eventAge"
	// TumblingWindow is an event source mapping that wants a state as its answer.
	TumblingWindow = "tumblingWindow"
	// RecordDistribution is a stream that ignores partition keys.
	RecordDistribution = "recordDistribution"
	// RecordSize is a stream whose records may not fit into an invocation.
	RecordSize = "recordSize"
	// ConsumptionMode is an event source mapping that shares a topic of Kafka with
	// other consumers, record by record.
	ConsumptionMode = "consumptionMode"
	// AliasTables is an alias whose versions lock in different tables.
	AliasTables = "aliasTables"
	// LogLevel is a log level that drops lines of the log.
	LogLevel = "logLevel"
	// Replication is a table with replicas that each evaluate conditions.
	Replication = "replication"
	// StrongGlobalTable is a strongly consistent global table, which has no TTL and
	// refuses transactions.
	StrongGlobalTable = "strongGlobalTable"
)

// Number is a numeric setting. The zero value is one that is not known, such as
// a parameter of a deployment.
type Number struct {
	Value float64
	Known bool
}

// Known returns a setting that is known.
func Known(value float64) Number { return Number{value, true} }

// is reports whether n is known to be value.
func (n Number) is(value float64) bool { return n == Known(value) }
