package rules

import (
	"fmt"
	"math"
	"strings"
)

// Function is a function that locks.
type Function struct {
	Timeout             Number // in seconds
	HasDeadLetterQueue  bool
	GoneDeadLetterQueue string    // its name, if it does not exist
	LogLevel            string    // of the application; empty if nothing is dropped, or unknown
	LinesAreCounted     bool      // for alarms
	Async               []Async   // how services invoke it
	Versions            []Version // among which an alias divides the invocations
}

// Version is where a version of a function locks.
type Version struct{ Name, Table, Namespace string }

// Async is how services invoke a function asynchronously.
type Async struct {
	Qualifier             string // alias or version that they invoke; empty if neither
	Services              []string
	HasFailureDestination bool   // for that alias or version
	GoneDestination       string // the failure destination, if it does not exist
	Retries               Number // for that alias or version
	EventAge              Number // the most, in seconds, for that alias or version
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

// Lambda's attempts at an asynchronous invocation come so many seconds after
// the failure before, and the lock of a process that was ended at its deadline
// is held for lock.DefaultGrace and 6 s more, if its work had outlived its
// context:
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
const (
	secondAttempt = 60
	thirdAttempt  = 120
	lockGrace     = 8
)

// lastAttempt returns how many seconds of waiting come before the last attempt,
// and how many attempts do.
func (a *Async) lastAttempt() (waits, attempts float64) {
	if a.Retries.is(1) {
		return secondAttempt, 1
	}
	return secondAttempt + thirdAttempt, 2
}

// Check judges the function itself.
func (f *Function) Check() []Finding {
	var found []Finding
	for i := range f.Async {
		found = append(found, f.checkAsync(&f.Async[i])...)
	}
	found = append(found, f.checkAsyncTimeout()...)
	if f.GoneDeadLetterQueue != "" {
		found = append(found, Finding{ID: DeadLetterQueue, Text: fmt.Sprintf("its dead-letter queue %s does not exist, so an event that fails for good is lost unless a failure destination keeps it: "+
			"create it, or name another", f.GoneDeadLetterQueue)})
	}
	found = append(found, f.checkVersions()...)
	return append(found, f.checkLogLevel()...)
}

// checkAsyncTimeout finds that all attempts may find the lock of a process that
// died.
func (f *Function) checkAsyncTimeout() []Finding {
	last := math.Inf(1)
	for i := range f.Async {
		if a := &f.Async[i]; !a.Retries.is(0) {
			waits, _ := a.lastAttempt()
			last = min(last, waits)
		}
	}
	if !f.Timeout.Known || f.Timeout.Value+lockGrace <= last {
		return nil
	}
	return []Finding{{ID: AsyncTimeout, Text: fmt.Sprintf(
		"it is invoked asynchronously and has a timeout of %g s: if its process dies, its lock is held until that time, but Lambda's last attempt comes after %g s, "+
			"so all attempts may find the lock held, and the event fails. Set the timeout to at most %g s, or use middleware.Heartbeat and acknowledge this warning",
		f.Timeout.Value, last, last-lockGrace)}}
}

// checkVersions finds that two versions, of which an alias invokes one or the
// other, do not see each other's locks.
func (f *Function) checkVersions() []Finding {
	for _, a := range f.Versions {
		for _, b := range f.Versions {
			if a.Table == "" || b.Table == "" || a.Table == b.Table && a.Namespace == b.Namespace {
				continue
			}
			return []Finding{{ID: AliasTables, Fatal: true, Text: fmt.Sprintf("its invocations are divided among version %s, which locks in table %s and namespace %s, "+
				"and version %s, which locks in table %s and namespace %s: each can hold the lock of an event at the same time. "+
				"Give both the same LOCK_TABLE_NAME and LOCK_NAMESPACE, or send all invocations to one", a.Name, a.Table, a.Namespace, b.Name, b.Table, b.Namespace)}}
		}
	}
	return nil
}

// checkLogLevel finds that Lambda drops log lines: from WARN on, those without
// a level, as a text logger writes them, because it takes them for INFO. Of
// those with one, most that are counted are errors, and those of a lock that
// was taken over and of an event that was interrupted are warnings.
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
func (f *Function) checkLogLevel() []Finding {
	const remedy = ": set ApplicationLogLevelV2 to INFO or lower"
	what := ""
	switch {
	case f.LogLevel == "FATAL":
		what = "which drops the error of a lost lease, so the leases it loses are neither logged nor counted"
	case f.LogLevel == "ERROR" && f.LinesAreCounted:
		what = "which drops the warnings of locks that were taken over and of interrupted events, so the alarms TakenOver and Interrupted do not see it"
	case f.LogLevel == "ERROR" || f.LogLevel == "WARN":
		what = "which drops every line that has no level, as a text logger writes them"
		if f.LinesAreCounted {
			what += ", so no alarm sees it"
		}
		return []Finding{{ID: LogLevel, Text: "its application log level is " + f.LogLevel + ", " + what + remedy + ", or log JSON and acknowledge this warning"}}
	default:
		return nil
	}
	return []Finding{{ID: LogLevel, Text: "its application log level is " + f.LogLevel + ", " + what + remedy}}
}

// checkAsync finds that nothing keeps an event that failed, or that one or two
// held locks are enough for that. A held lock fails the invocation, and Lambda
// gives up after the third attempt.
func (f *Function) checkAsync(a *Async) []Finding {
	how := "it is invoked asynchronously (" + strings.Join(a.Services, ", ") + ")"
	if a.Qualifier != "" {
		how += " through " + a.Qualifier
	}
	var found []Finding
	note := func(id, format string, args ...any) {
		found = append(found, Finding{ID: id, Text: how + fmt.Sprintf(format, args...)})
	}
	switch {
	case a.GoneDestination != "":
		note(FailureDestination, " and its failure destination %s does not exist, so an event that fails for good is lost unless a dead-letter queue keeps it: create it, or set another OnFailure", a.GoneDestination)
	case !f.HasDeadLetterQueue && !a.HasFailureDestination:
		note(FailureDestination, " and has neither a dead-letter queue nor a failure destination there, "+
			"so an event that fails three times, for example because its lock stays held, is lost: set OnFailure or DeadLetterQueue")
	}
	if a.Retries.Known && a.Retries.Value < fewest {
		note(RetryAttempts, " with RetryAttempts %g: an event that finds its lock held %s has failed for good. Set RetryAttempts to 2", a.Retries.Value, times(a.Retries.Value+1))
	}
	// https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
	waits, attempts := a.lastAttempt()
	if least := waits + attempts*f.Timeout.Value; a.EventAge.Known && a.EventAge.Value < least && !a.Retries.is(0) {
		note(EventAge, " with a MaxEventAge of %g s: Lambda gives up an event at that age, and the last attempt may come after %g s, "+
			"so an event that finds its lock held is given up early. Set MaxEventAge to at least %g s", a.EventAge.Value, least, least)
	}
	return found
}
