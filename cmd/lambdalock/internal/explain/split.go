package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
)

// place is a record and where in the event it is.
type place struct {
	where string
	doc   []byte
}

// split returns the records of an event, or the whole of an event that has none
// or whose functions take the whole.
func split(kind *eventkind.Kind, doc []byte) ([]place, error) {
	switch {
	case kind.Each() == "", kind == eventkind.CustomBus:
		return []place{{doc: doc}}, nil
	case kind == eventkind.Kafka:
		return splitKafka(doc)
	case kind == eventkind.DocumentDB:
		return splitChanges(doc)
	}
	var e struct{ Records []json.RawMessage }
	err := json.Unmarshal(doc, &e)
	return listed("Records", e.Records), err
}

func listed(name string, records []json.RawMessage) []place {
	var all []place
	for i, r := range records {
		all = append(all, place{fmt.Sprintf("%s[%d]", name, i), r})
	}
	return all
}

// splitKafka takes the records of all partitions.
func splitKafka(doc []byte) ([]place, error) {
	var e struct {
		Records map[string][]json.RawMessage `json:"records"`
	}
	if err := json.Unmarshal(doc, &e); err != nil {
		return nil, err
	}
	var all []place
	for _, partition := range slices.Sorted(maps.Keys(e.Records)) {
		all = append(all, listed("records["+partition+"]", e.Records[partition])...)
	}
	return all, nil
}

// splitChanges makes an event of each change, because only the event names the
// cluster.
func splitChanges(doc []byte) ([]place, error) {
	var e struct {
		Events []json.RawMessage `json:"events"`
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &e); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc, &members); err != nil {
		return nil, err
	}
	all := listed("events", e.Events)
	for i := range all {
		members["events"] = json.RawMessage("[" + string(all[i].doc) + "]")
		all[i].doc, _ = json.Marshal(members) // of JSON: it cannot fail
	}
	return all, nil
}
