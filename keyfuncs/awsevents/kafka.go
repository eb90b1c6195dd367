package awsevents

// KafkaEventResponse is the answer to a batch of Kafka of which records failed.
//
// Source:
// https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html.
type KafkaEventResponse struct {
	BatchItemFailures []KafkaBatchItemFailure `json:"batchItemFailures"`
}

// KafkaBatchItemFailure is a record that failed.
type KafkaBatchItemFailure struct {
	ItemIdentifier KafkaItemIdentifier `json:"itemIdentifier"`
}

// KafkaItemIdentifier names a record of a batch.
type KafkaItemIdentifier struct {
	Partition string `json:"partition"` // topic and partition, as in the Records of the event: orders-0
	Offset    int64  `json:"offset"`
}
