package keyfuncs_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// text returns an event of testdata.
func text(t testing.TB, file string) string {
	t.Helper()
	b := expect.Value(os.ReadFile("testdata/" + file))(t)
	return string(b)
}

// decoded returns the event in a text.
func decoded[E any](t testing.TB, text string) (e E) {
	t.Helper()
	expect.Must(t, json.Unmarshal([]byte(text), &e))
	return e
}

// load returns an event of testdata, decoded.
func load[E any](t testing.TB, file string) E {
	t.Helper()
	return decoded[E](t, text(t, file))
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	b := expect.Value(json.Marshal(v))(t)
	return string(b)
}

// changed returns the key of an event of testdata after a change, if there is
// one.
func changed[E any](t *testing.T, file string, key keyfuncs.Func[E], change func(*E)) (lock.Key, error) {
	t.Helper()
	e := load[E](t, file)
	if change != nil {
		change(&e)
	}
	return key(t.Context(), e)
}

// gives checks that an event of testdata has this key, also when it comes a
// second time.
func gives[E any](t *testing.T, file string, key keyfuncs.Func[E], want lock.Key) {
	t.Helper()
	t.Run(file, func(t *testing.T) {
		for range 2 {
			if got, err := changed(t, file, key, nil); got != want || err != nil {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
	})
}

// apart checks that each change of an event makes another key.
func apart[E any](t *testing.T, file string, key keyfuncs.Func[E], changes map[string]func(*E)) {
	t.Helper()
	keys := map[string]func() (lock.Key, error){
		"unchanged": func() (lock.Key, error) { return changed(t, file, key, nil) },
	}
	for name, change := range changes {
		keys[name] = func() (lock.Key, error) { return changed(t, file, key, change) }
	}
	distinct(t, keys)
}

// distinct checks that all keys differ.
func distinct(t *testing.T, keys map[string]func() (lock.Key, error)) {
	t.Helper()
	seen := map[lock.Key]string{}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			k, err := key()
			if other, ok := seen[k]; ok || err != nil {
				t.Errorf("%+v, %v: also the key of %s", k, err, other)
			}
			seen[k] = name
		})
	}
}

// refuses checks that each changed event gives a NoKeyError. The changes are
// named for the field that the error names.
func refuses[E any](t *testing.T, file string, key keyfuncs.Func[E], changes map[string]func(*E)) {
	t.Helper()
	for field, change := range changes {
		_, err := changed(t, file, key, change)
		refused(t, file+" "+field, err, field, "")
	}
}

// refused checks that the error is a NoKeyError that names the field at fault
// and says what helps.
func refused(t *testing.T, name string, err error, field, says string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		if e, ok := err.(*lock.NoKeyError); !ok || e.Field != field || !strings.Contains(e.Error(), says) {
			t.Errorf("%v, want a NoKeyError of %s that says %q", err, field, says)
		}
	})
}

// inQueue lets a key function of messages take the body of one.
func inQueue(key keyfuncs.Func[events.SQSMessage]) keyfuncs.Func[string] {
	return func(ctx context.Context, body string) (lock.Key, error) {
		return key(ctx, events.SQSMessage{MessageId: "m", EventSource: "aws:sqs", Body: body})
	}
}

// inTopic lets a key function of records take the message of one.
func inTopic(key keyfuncs.Func[events.SNSEventRecord]) keyfuncs.Func[string] {
	return func(ctx context.Context, message string) (lock.Key, error) {
		return key(ctx, events.SNSEventRecord{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: "m", Message: message}})
	}
}

// published returns what a topic puts into a queue for a message.
func published(t testing.TB, message string) string {
	t.Helper()
	return marshal(t, events.SNSEntity{Type: "Notification", MessageID: "m", TopicArn: "arn:aws:sns:us-east-2:123456789012:t", Message: message})
}
