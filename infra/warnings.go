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
	// WarnPartialAnswer warns of an event source mapping that ignores which records
	// of a batch failed.
	WarnPartialAnswer = "@lambdalock/infra:partialAnswer"
	// WarnRetryLimit warns of a stream that retries a failing record until the
	// record expires, which blocks its shard.
	WarnRetryLimit = "@lambdalock/infra:retryLimit"
	// WarnFailureDestination warns of asynchronous invocations that lose an event
	// after three failures.
	WarnFailureDestination = "@lambdalock/infra:failureDestination"
	// WarnLeasesNotCounted warns that the alarm for lost leases does not see the
	// function.
	WarnLeasesNotCounted = "@lambdalock/infra:leasesNotCounted"
	// WarnLeasesLostTwice warns, at an alarm, that two alarms have the same metric.
	WarnLeasesLostTwice = "@lambdalock/infra:leasesLostTwice"
	// WarnPermission warns that the function's role did not take the permission to
	// lock.
	WarnPermission = "@lambdalock/infra:permission"
	// WarnStrongGlobalTable warns of a strongly consistent global table, which has
	// no TTL and refuses transactions.
	WarnStrongGlobalTable = "@lambdalock/infra:strongGlobalTable"
)
