package rules

import "fmt"

// Queue is an SQS queue.
type Queue struct {
	VisibilityTimeout Number // in seconds
	HasRedrivePolicy  bool
	MaxReceiveCount   Number
	FIFO              bool

	DeadLetterRetention Number // of its dead-letter queue, in seconds
	GoneDeadLetterQueue string // its name, if it does not exist
}

// checkVisibilityTimeout finds that a message comes back while the function
// works on it: the message finds its lock held, and that spends one of its
// receives. The batching window is a part of that time.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
func (m *Mapping) checkVisibilityTimeout(timeout Number) []Finding {
	visibility, least := m.Queue.VisibilityTimeout, 6*timeout.Value
	how := fmt.Sprintf("less than six times the function's timeout of %g s", timeout.Value)
	if window := m.BatchingWindow; window.Known && window.Value > 0 {
		least += window.Value
		how += fmt.Sprintf(" and the batching window of %g s", window.Value)
	}
	if !timeout.Known || !visibility.Known || visibility.Value >= least {
		return nil
	}
	return []Finding{{ID: VisibilityTimeout, Text: fmt.Sprintf("the visibility timeout of its queue %s is %g s, %s, "+
		"so messages come back while the function works on them: set VisibilityTimeout to at least %g s", m.Source, visibility.Value, how, least)}}
}

// checkReceiveCount finds that held locks make a message fail for good after
// one or two receives, or that nothing keeps it. AWS recommends five receives,
// on the same page.
func (m *Mapping) checkReceiveCount() []Finding {
	if !m.Queue.HasRedrivePolicy {
		return []Finding{{ID: DeadLetterQueue, Text: fmt.Sprintf("its queue %s has no dead-letter queue: "+
			"a message that always fails comes back until its retention period ends, and is then lost. "+
			"Set DeadLetterQueue with a MaxReceiveCount of at least 5", m.Source)}}
	}
	if receives := m.Queue.MaxReceiveCount; receives.Known && receives.Value <= fewest {
		return []Finding{{ID: MaxReceiveCount, Text: fmt.Sprintf("its queue %s has a MaxReceiveCount of %g: "+
			"a message that finds its lock held %s goes to the dead-letter queue. "+
			"Set MaxReceiveCount to at least 5", m.Source, receives.Value, times(receives.Value))}}
	}
	return nil
}

// checkDeadLetterQueue finds a dead-letter queue that drops messages before
// anyone sees them. A standard queue counts their age from when they were first
// sent; a FIFO queue from when they were moved.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
func (m *Mapping) checkDeadLetterQueue() []Finding {
	q := m.Queue
	if q.GoneDeadLetterQueue != "" {
		return []Finding{{ID: DeadLetterQueue, Text: fmt.Sprintf("the dead-letter queue %s of its queue %s does not exist: "+
			"a message that always fails comes back until its retention period ends, and is then lost. Create the queue, or name another",
			q.GoneDeadLetterQueue, m.Source)}}
	}
	kept, source := q.DeadLetterRetention, m.Retention
	if q.FIFO || !q.HasRedrivePolicy || !kept.Known || !source.Known || kept.Value > source.Value {
		return nil
	}
	return []Finding{{ID: DeadLetterRetention, Text: fmt.Sprintf("the dead-letter queue of its queue %s keeps messages for %.3g days, and the queue for %.3g: "+
		"both count from when a message was sent, so one that fails late is dropped soon after it is moved, or at once. "+
		"Keep them longer there, for 14 days at most, or shorter in the queue", m.Source, kept.Value/day, source.Value/day)}}
}

// times says how often.
func times(n float64) string {
	if n == 1 {
		return "once"
	}
	return "twice"
}
