package awsevents

import "encoding/json"

// DocumentDBEvent is a batch of changes from a DocumentDB change stream.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/with-documentdb.html.
type DocumentDBEvent struct {
	EventSource    string                  `json:"eventSource"`
	EventSourceARN string                  `json:"eventSourceArn"` // of the cluster
	Events         []DocumentDBEventRecord `json:"events"`
}

// DocumentDBEventRecord is one change of a batch.
type DocumentDBEventRecord struct {
	// Cluster is the ARN of the cluster. Decoding an event fills it in.
	Cluster string           `json:"-"`
	Event   DocumentDBChange `json:"event"`
}

// DocumentDBChange is a change as the stream describes it. Its documents are in
// MongoDB's extended JSON.
//
// Source: https://www.mongodb.com/docs/manual/reference/change-events/.
type DocumentDBChange struct {
	ID struct {
		Data string `json:"_data"` // the resume token
	} `json:"_id"`
	OperationType string `json:"operationType"` // insert, update, replace, delete and others
	Namespace     struct {
		Database   string `json:"db"`
		Collection string `json:"coll"`
	} `json:"ns"`
	ClusterTime       json.RawMessage `json:"clusterTime,omitempty"`
	DocumentKey       json.RawMessage `json:"documentKey,omitempty"` // empty if the change is not of one document
	FullDocument      json.RawMessage `json:"fullDocument,omitempty"`
	UpdateDescription json.RawMessage `json:"updateDescription,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (e *DocumentDBEvent) UnmarshalJSON(b []byte) error {
	type plain DocumentDBEvent // without this method
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	for i := range e.Events {
		e.Events[i].Cluster = e.EventSourceARN
	}
	return nil
}
