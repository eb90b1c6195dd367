package rules

import "fmt"

// kafkaRetries is how often Lambda retries if a mapping of Kafka has a failure
// destination and no other limit.
// https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html
const kafkaRetries = 10

// checkStream judges what Lambda does with a record of a stream or of Kafka
// that fails.
func (m *Mapping) checkStream() []Finding {
	var found []Finding
	note := func(id, format string, args ...any) {
		found = append(found, Finding{ID: id, Text: fmt.Sprintf("its event source mapping %s (%s) ", m.Name, m.Kind) + fmt.Sprintf(format, args...)})
	}
	retries, lane, remedy := m.Retries, "shard", "Set RetryAttempts or MaxRecordAge, and OnFailure to keep the record"
	if m.Kind == Kafka { // whose limits need provisioned mode
		retries, lane, remedy = m.kafkaRetries(), "partition", "Set OnFailure, with which Lambda gives up after 10 retries and keeps the record"
	}
	if m.GoneDestination != "" {
		note(FailureDestination, "has the failure destination %s, which does not exist, so a record that Lambda gives up is lost: create it, or set another OnFailure", m.GoneDestination)
	}
	if m.SharesGroup {
		found = append(found, m.checkQueueMode()...)
	}
	if retries.Known && retries.Value >= 0 && retries.Value < fewest && (!m.SharesGroup || m.HasFailureDestination) {
		note(RetryAttempts, "has RetryAttempts %g: a record that finds its lock held %s has failed for good. Set RetryAttempts to at least 5", retries.Value, times(retries.Value+1))
	}
	switch {
	case m.SharesGroup: // the broker retries
	case retries.is(Unlimited) && m.RecordAge.is(Unlimited):
		// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
		note(RetryLimit, "retries without limit: a record that always fails blocks its %s until the record expires. %s", lane, remedy)
	case !m.HasFailureDestination && (isLimit(retries) || isLimit(m.RecordAge)):
		note(FailureDestination, "gives up a record after %s, and has no failure destination, so Lambda discards it, for example because its lock stays held: set OnFailure", limits(retries, m.RecordAge))
	}
	return append(found, m.checkMeaning()...)
}

// kafkaRetries returns the retries of Kafka. Unset, they depend on the mode and
// on the failure destination.
func (m *Mapping) kafkaRetries() Number {
	switch {
	case !m.Retries.is(Unlimited):
	case m.SharesGroup:
		return Known(0)
	case m.HasFailureDestination:
		return Known(kafkaRetries)
	}
	return m.Retries
}

// checkQueueMode judges a share group of Kafka.
// https://docs.aws.amazon.com/lambda/latest/dg/polling-kafka-queue.html
func (m *Mapping) checkQueueMode() []Finding {
	found := []Finding{{ID: ConsumptionMode, Text: fmt.Sprintf("its event source mapping %s (%s) has ConsumptionMode Queue: EachKafkaRecord does not begin what follows a failed record of a partition, "+
		"and each return of such a record counts as a delivery, until the broker archives it unhandled. "+
		"Give the handler middleware.OrderPerName and acknowledge this warning", m.Name, m.Kind)}}
	if !m.HasFailureDestination {
		found = append(found, Finding{ID: FailureDestination, Text: fmt.Sprintf("its event source mapping %s (%s) has ConsumptionMode Queue and no failure destination, "+
			"so the broker archives a record after some deliveries (group.share.delivery.count.limit, 5 by default), for example because its lock stays held: "+
			"set OnFailure, and RetryAttempts to at least 5", m.Name, m.Kind)})
	}
	return found
}

// checkMeaning finds settings that change what a record or an answer means.
func (m *Mapping) checkMeaning() []Finding {
	var found []Finding
	if m.TumblingWindow.Known && m.TumblingWindow.Value > 0 {
		// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html
		found = append(found, Finding{ID: TumblingWindow, Text: fmt.Sprintf("its event source mapping %s (%s) has a tumbling window of %g s: "+
			"Lambda takes an answer without the window's state for a failure, and EachKinesisRecord and EachDynamoDBRecord give none, so the shard stands still. "+
			"Remove TumblingWindow, or acknowledge this warning if the handler returns the state", m.Name, m.Kind, m.TumblingWindow.Value)})
	}
	if m.DistributesByItself {
		// https://docs.aws.amazon.com/streams/latest/dev/service-managed-pk-configure.html
		found = append(found, Finding{ID: RecordDistribution, Text: fmt.Sprintf("its source %s (%s) has the record distribution AUTO, which ignores partition keys: "+
			"records need not have one, those of a key come in any order, and KinesisRecord locks a record without one for itself. "+
			"Take Name and Event from the data, or acknowledge this warning if records do not depend on each other", m.Source, m.Kind)})
	}
	if m.RecordSize.Known && m.RecordSize.Value > largestRecord {
		found = append(found, Finding{ID: RecordSize, Text: fmt.Sprintf("its source %s (%s) takes records of up to %g KiB, and Lambda invokes a function with up to 6 MB, of which base64 leaves %d KiB: "+
			"a larger record reaches no handler, and may stop its shard. Lower MaxRecordSizeInKiB and keep large data in S3, or acknowledge this warning if no record is as large", m.Source, m.Kind, m.RecordSize.Value, largestRecord)})
	}
	return found
}

// largestRecord is about the largest record that fits into an invocation, in
// KiB.
// https://docs.aws.amazon.com/streams/latest/dev/large-records.html
// https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html
const largestRecord = 6 * 1024 * 3 / 4

// isLimit reports whether a limit is set.
func isLimit(n Number) bool { return n.Known && n.Value >= 0 }

// limits names the limits that are set.
func limits(retries, age Number) string {
	text := ""
	if isLimit(retries) {
		text = fmt.Sprintf("%g retries", retries.Value)
	}
	if isLimit(age) {
		if text != "" {
			text += " or "
		}
		text += fmt.Sprintf("%g s", age.Value)
	}
	return text
}
