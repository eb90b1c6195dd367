package awsevents

// IoTMessage is what the SQL of an IoT rule must add to the payload. Embed it
// in the type of your event, or fill it from the event's fields.
type IoTMessage struct {
	Topic   string `json:"topic"`   // as topic() returns it
	TraceID string `json:"traceId"` // as traceid() returns it; empty if the message did not come over MQTT
}
