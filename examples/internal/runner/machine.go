package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

// machine is a state machine of Step Functions with the few things that the
// example uses.
// https://states-language.net/spec.html
type machine struct {
	StartAt string
	States  map[string]state
}

// state is a Task, a Succeed or a Fail.
type state struct {
	Type, Next, Error string
	Parameters        map[string]any
	ResultPath        string // of the form $.name; empty discards the result
	OutputPath        string // of a Succeed, of the same form
	Retry             []rule
	Catch             []rule
}

// rule says what to do after certain errors.
type rule struct {
	ErrorEquals      []string
	MaxAttempts      int    // of a Retry
	ResultPath, Next string // of a Catch
}

func (r rule) matches(errorType string) bool {
	return slices.Contains(r.ErrorEquals, errorType) || slices.Contains(r.ErrorEquals, "States.ALL")
}

// pause replaces the intervals of the state machine, so that acts are quick.
const pause = 20 * time.Millisecond

func readMachine(path string) (*machine, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := &machine{}
	return m, json.Unmarshal(b, m)
}

// execute runs the state machine with input, and returns its output as the
// result of one attempt.
func (m *machine) execute(ctx context.Context, input []byte, invoke func(context.Context, []byte) locallambda.Result) locallambda.Result {
	data := map[string]any{}
	failed := locallambda.Result{Outcome: locallambda.Failed, ErrorType: "States.Runtime"}
	if json.Unmarshal(input, &data) != nil {
		return failed
	}
	for name := m.StartAt; ctx.Err() == nil; {
		s := m.States[name]
		switch s.Type {
		case "Succeed":
			out, _ := json.Marshal(data[strings.TrimPrefix(s.OutputPath, "$.")]) // it was JSON before
			return locallambda.Result{Outcome: locallambda.Succeeded, Payload: out}
		case "Fail":
			failed.ErrorType = s.Error
			return failed
		case "Task":
		default:
			return failed
		}
		r := s.run(ctx, data, invoke)
		path, next := s.ResultPath, s.Next
		if r.Outcome != locallambda.Succeeded {
			if path, next = s.caught(r.ErrorType); next == "" {
				return r
			}
		}
		if key, ok := strings.CutPrefix(path, "$."); ok {
			data[key] = json.RawMessage(r.Payload)
		}
		name = next
	}
	return failed
}

// run invokes the function of a Task, with its retries.
func (s *state) run(ctx context.Context, data map[string]any, invoke func(context.Context, []byte) locallambda.Result) locallambda.Result {
	parameters := map[string]any{}
	for key, value := range s.Parameters {
		if name, ok := strings.CutSuffix(key, ".$"); ok {
			key, value = name, data[strings.TrimPrefix(fmt.Sprint(value), "$.")]
		}
		parameters[key] = value
	}
	event, _ := json.Marshal(parameters) // it was JSON before
	retries := make([]int, len(s.Retry))
	for {
		r := invoke(ctx, event)
		i := slices.IndexFunc(s.Retry, func(retry rule) bool { return retry.matches(r.ErrorType) })
		if r.Outcome == locallambda.Succeeded || i < 0 || retries[i] == s.Retry[i].MaxAttempts || ctx.Err() != nil {
			return r
		}
		retries[i]++
		time.Sleep(pause)
	}
}

// caught returns where a Catch puts the error, and the next state, or "".
func (s *state) caught(errorType string) (path, next string) {
	for _, c := range s.Catch {
		if c.matches(errorType) {
			return c.ResultPath, c.Next
		}
	}
	return "", ""
}
