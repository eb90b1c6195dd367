package rules

import (
	"fmt"
	"strings"
)

// Function is a function that locks.
type Function struct {
	Timeout            Number // in seconds
	HasDeadLetterQueue bool
	LogLevel           string  // of the application; empty if nothing is dropped, or unknown
	LinesAreCounted    bool    // for alarms
	Async              []Async // how services invoke it
}

// Async is how services invoke a function asynchronously.
type Async struct {
	Qualifier             string // alias or version that they invoke; empty if neither
	Services              []string
	HasFailureDestination bool   // for that alias or version
	Retries               Number // for that alias or version
}

// asyncServices are the services that invoke a function asynchronously, by the
// beginning of their principals:
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-services.html
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html
var asyncServices = []string{
	"s3", "sns", "events", "scheduler", "iot", "logs", "lambda.alarms.cloudwatch", "ses", "codecommit", "config", "cloudformation",
}

// AsyncService returns the service of a principal, such as
// logs.eu-west-1.amazonaws.com, or "" if it does not invoke asynchronously.
func AsyncService(principal string) string {
	for _, service := range asyncServices {
		if strings.HasPrefix(principal, service+".") {
			return service
		}
	}
	return ""
}

// Lambda's last attempt at an asynchronous invocation comes so many seconds
// after the first failure, and the lock of a process that died is held until
// its deadline and lock.DefaultGrace:
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
const (
	lastAttempt = 60 + 120
	lockGrace   = 2
)

// Check judges the function itself.
func (f *Function) Check() []Finding {
	var found []Finding
	for i := range f.Async {
		found = append(found, f.checkAsync(&f.Async[i])...)
	}
	if len(f.Async) > 0 && f.Timeout.Known && f.Timeout.Value+lockGrace > lastAttempt {
		found = append(found, Finding{ID: AsyncTimeout, Text: fmt.Sprintf(
			"it is invoked asynchronously and has a timeout of %g s: if its process dies, its lock is held until that time, but Lambda's last attempt comes after %d s, "+
				"so all attempts may find the lock held, and the event fails. Set the timeout to at most %d s, or use middleware.Heartbeat and acknowledge this warning",
			f.Timeout.Value, lastAttempt, lastAttempt-lockGrace)})
	}
	return append(found, f.checkLogLevel()...)
}

// checkLogLevel finds that Lambda drops log lines that are counted: most are
// errors, and that of a lock that was taken over is a warning. Logs of text
// have no level in this place:
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
func (f *Function) checkLogLevel() []Finding {
	switch {
	case f.LogLevel == "FATAL":
		return []Finding{{ID: LogLevel, Text: "its application log level is FATAL, which drops the error of a lost lease, so the leases it loses are neither logged nor counted: " +
			"set ApplicationLogLevelV2 to WARN or lower"}}
	case f.LogLevel == "ERROR" && f.LinesAreCounted:
		return []Finding{{ID: LogLevel, Text: "its application log level is ERROR, which drops the warning of a lock that was taken over, so the alarm TakenOver does not see it: " +
			"set ApplicationLogLevelV2 to WARN or lower"}}
	}
	return nil
}

// checkAsync finds that nothing keeps an event that failed, or that one held
// lock is enough for that. A held lock fails the invocation, and Lambda gives
// up after the third attempt.
func (f *Function) checkAsync(a *Async) []Finding {
	how := "it is invoked asynchronously (" + strings.Join(a.Services, ", ") + ")"
	if a.Qualifier != "" {
		how += " through " + a.Qualifier
	}
	var found []Finding
	if !f.HasDeadLetterQueue && !a.HasFailureDestination {
		found = append(found, Finding{ID: FailureDestination, Text: how + " and has neither a dead-letter queue nor a failure destination there, " +
			"so an event that fails three times, for example because its lock stays held, is lost: set OnFailure or DeadLetterQueue"})
	}
	if a.Retries.is(0) {
		found = append(found, Finding{ID: RetryAttempts, Text: how + " with RetryAttempts 0: an event that finds its lock held once has failed for good. Set RetryAttempts to 2"})
	}
	return found
}
