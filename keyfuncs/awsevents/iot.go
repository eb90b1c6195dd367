package awsevents

// IoTMessage is what the SQL of an IoT rule must add to the payload. Embed it
// in the type of your event, or fill it from there.
type IoTMessage struct {
	Topic   string `json:"topic"`
	TraceID string `json:"traceId"`
}
