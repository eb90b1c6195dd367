package infra

// The ids of the warnings, for Annotations.AcknowledgeWarning.
const (
	// WarnVisibilityTimeout warns of a queue that delivers a message again while
	// the function still works on it.
	WarnVisibilityTimeout = "@lambdalock/infra:visibilityTimeout"
	// WarnDeadLetterQueue warns of a queue without a dead-letter queue: a message
	// that always fails comes back until it expires.
	WarnDeadLetterQueue = "@lambdalock/infra:deadLetterQueue"
	// WarnMaxReceiveCount warns of a queue that gives up a message whose lock was
	// held once.
	WarnMaxReceiveCount = "@lambdalock/infra:maxReceiveCount"
	// WarnReportBatchItemFailures warns of an event source mapping that ignores
	// which records of a batch failed.
	WarnReportBatchItemFailures = "@lambdalock/infra:partialAnswer"
	// WarnRetryLimit warns of a stream that retries a failing record until the
	// record expires, which blocks its shard.
	WarnRetryLimit = "@lambdalock/infra:retryLimit"
	// WarnFailureDestination warns of asynchronous invocations that lose an event
	// after three failures.
	WarnFailureDestination = "@lambdalock/infra:failureDestination"
	// WarnLeasesNotCounted warns that the alarm for lost leases does not see the
	// function.
	WarnLeasesNotCounted = "@lambdalock/infra:leasesNotCounted"
	// WarnLogLevel warns of a log level that drops the message of a lost lease.
	WarnLogLevel = "@lambdalock/infra:logLevel"
	// WarnAsyncTimeout warns of asynchronous invocations whose lock, if the process
	// dies, outlives all retries.
	WarnAsyncTimeout = "@lambdalock/infra:asyncTimeout"
	// WarnRetryAttempts warns of a source that gives up an event whose lock was
	// held once.
	WarnRetryAttempts = "@lambdalock/infra:retryAttempts"
	// WarnRetention warns of a source that keeps an event longer than the library
	// remembers by default that it was completed.
	WarnRetention = "@lambdalock/infra:retention"
	// WarnRemovalPolicy warns, at the table, that it is deleted with its stack.
	WarnRemovalPolicy = "@lambdalock/infra:removalPolicy"
	// WarnPermission warns that the function's role did not take the permission to
	// lock.
	WarnPermission = "@lambdalock/infra:permission"
	// WarnStrongGlobalTable warns of a strongly consistent global table, which has
	// no TTL and refuses transactions.
	WarnStrongGlobalTable = "@lambdalock/infra:strongGlobalTable"
)
