package rules

import "fmt"

// Subscriber invokes a function with the events of a Custom Event Bus.
type Subscriber struct {
	Name                  string
	HasFailureDestination bool
	Retries               Number
	EventAge              Number // the most, in seconds
	Waits                 Number // for how many seconds it waits for the function; not known if it does not
}

// Check judges the subscriber. The timeout is the function's, in seconds.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-retry.html
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-target-lambda.html
func (s *Subscriber) Check(timeout Number) []Finding {
	var found []Finding
	note := func(id, format string, args ...any) {
		found = append(found, Finding{ID: id, Text: "its subscriber " + s.Name + " of a Custom Event Bus " + fmt.Sprintf(format, args...)})
	}
	if !s.HasFailureDestination {
		note(FailureDestination, "has no OnFailureConfiguration, so EventBridge drops an event that fails for good, for example because its lock stays held: "+
			"set OnFailureConfiguration, MaxEventAgeInSeconds to 86400, and MaxRetryAttempts to 185")
	}
	if s.Retries.Known && s.Retries.Value < fewest {
		note(RetryAttempts, "has MaxRetryAttempts %g: an event that finds its lock held %s has failed for good. Set it to at least %d", s.Retries.Value, times(s.Retries.Value+1), fewest)
	}
	if !timeout.Known {
		return found
	}
	if held := timeout.Value + lockGrace; s.EventAge.Known && s.EventAge.Value < held {
		note(EventAge, "has MaxEventAgeInSeconds %g: if the function's process dies, its lock is held for up to %g s, and EventBridge gives up the event before. "+
			"Set it to 86400, and MaxRetryAttempts to 185", s.EventAge.Value, held)
	}
	if s.Waits.Known && timeout.Value >= s.Waits.Value {
		note(AsyncTimeout, "waits for an answer for %g s and then repeats, while the function may work for %g s: each held lock costs one of its retries. "+
			"Set the timeout to less, or InvocationType to EVENT, which keeps no order", s.Waits.Value, timeout.Value)
	}
	return found
}
