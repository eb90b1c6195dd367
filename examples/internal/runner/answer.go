package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// label says in a word or two how an invocation ended: the status of an HTTP
// response, the records that came back, the type of an error, or "done".
func label(r locallambda.Result) string {
	if r.Outcome != locallambda.Succeeded {
		return r.ErrorType
	}
	prelude, _, _ := bytes.Cut(r.Payload, []byte{0, 0, 0, 0, 0, 0, 0, 0}) // of a streamed response
	var a struct {
		StatusCode        int
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	switch {
	case json.Unmarshal(prelude, &a) != nil:
		return "done"
	case a.StatusCode != 0:
		return fmt.Sprint("status ", a.StatusCode)
	case len(a.BatchItemFailures) > 0:
		text := "back:"
		for _, f := range a.BatchItemFailures {
			id := f.ItemIdentifier
			text += " …" + id[max(0, len(id)-4):]
		}
		return text
	}
	return "done"
}

// summary counts labels: "2 × HeldError, 1 × done".
func summary(results []locallambda.Result) string {
	count := map[string]int{}
	for _, r := range results {
		count[label(r)]++
	}
	var parts []string
	for l, n := range count {
		parts = append(parts, fmt.Sprintf("%d × %s", n, l))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// failedIDs are the records that an answer returns.
func failedIDs(payload []byte) []string {
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if json.Unmarshal(payload, &a) != nil {
		return nil
	}
	var ids []string
	for _, f := range a.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

// records takes a batch apart.
func records(event []byte) []json.RawMessage {
	var batch struct{ Records []json.RawMessage }
	_ = json.Unmarshal(event, &batch) // what is no batch has no records
	return batch.Records
}

// batchOf puts records together; nil if there are none.
func batchOf(records []json.RawMessage) []byte {
	if len(records) == 0 {
		return nil
	}
	event, err := json.Marshal(map[string]any{"Records": records})
	if err != nil {
		panic(err) // the records came out of JSON
	}
	return event
}

// sqsAgain is what a queue delivers after an answer: the messages it returns.
func sqsAgain(event []byte, r locallambda.Result) []byte {
	if r.Outcome != locallambda.Succeeded {
		return event
	}
	ids := failedIDs(r.Payload)
	return batchOf(slices.DeleteFunc(records(event), func(record json.RawMessage) bool {
		var m struct{ MessageID string }
		return json.Unmarshal(record, &m) == nil && !slices.Contains(ids, m.MessageID)
	}))
}

// shardAgain is what a shard delivers after an answer: everything from the first
// failed record on.
func shardAgain(event []byte, r locallambda.Result) []byte {
	if r.Outcome != locallambda.Succeeded {
		return event
	}
	ids, all := failedIDs(r.Payload), records(event)
	for i, record := range all {
		var k struct {
			Kinesis struct{ SequenceNumber string }
		}
		if json.Unmarshal(record, &k) == nil && slices.Contains(ids, k.Kinesis.SequenceNumber) {
			return batchOf(all[i:])
		}
	}
	return nil
}

// callerAgain is what a caller sends after an error: the same again.
func callerAgain(event []byte, r locallambda.Result) []byte {
	if r.Outcome != locallambda.Succeeded {
		return event
	}
	return nil
}
