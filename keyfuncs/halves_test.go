package keyfuncs_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/jmespath"
	"github.com/lambdalock/lambdalock/lock"
)

type halved struct {
	ID   string         `json:"id"`
	Note string         `json:"note"`
	More map[string]any `json:"more"`
}

func byID(_ context.Context, h halved) (lock.Key, error) {
	return lock.Key{Name: h.ID, Event: h.ID}, nil
}

// carriers decode a JSON text for a key function of what is in it.
func carriers[E any](key keyfuncs.Func[E]) map[string]func(ctx context.Context, text string) (lock.Key, error) {
	return map[string]func(ctx context.Context, text string) (lock.Key, error){
		"SQSBody": func(ctx context.Context, text string) (lock.Key, error) {
			return keyfuncs.SQSBody(key)(ctx, events.SQSMessage{MessageId: "m", Body: text})
		},
		"SNSBody": func(ctx context.Context, text string) (lock.Key, error) {
			return keyfuncs.SNSBody(key)(ctx, events.SNSEventRecord{SNS: events.SNSEntity{MessageID: "m", Message: text}})
		},
		"SNS in SQS": func(ctx context.Context, text string) (lock.Key, error) {
			body := `{"Type":"Notification","MessageId":"m","TopicArn":"arn","Message":` + strconv.QuoteToASCII(text) + `}`
			return keyfuncs.SQSBody(keyfuncs.SNSBody(key))(ctx, events.SQSMessage{MessageId: "m", Body: body})
		},
		"KinesisBody": func(ctx context.Context, text string) (lock.Key, error) {
			return keyfuncs.KinesisBody(key)(ctx, events.KinesisEventRecord{
				EventID: "shardId-0:1", EventSourceArn: "arn", Kinesis: events.KinesisRecord{Data: []byte(text), SequenceNumber: "1", PartitionKey: "p"},
			})
		},
		"EventBridgeDetail": func(ctx context.Context, text string) (lock.Key, error) {
			return keyfuncs.EventBridgeDetail(key)(ctx, events.EventBridgeEvent{ID: "e", Detail: json.RawMessage(text)})
		},
		"HTTPBody": func(ctx context.Context, text string) (lock.Key, error) {
			e := plainHTTP()
			e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(text)), true
			return keyfuncs.HTTPBody[httpRequest](key)(ctx, e)
		},
	}
}

// TestHalvesOfSurrogatePairs shows that a key is refused if it depends on half
// of a surrogate pair, which Go decodes as U+FFFD whichever it is, and that one
// elsewhere does no harm.
func TestHalvesOfSurrogatePairs(t *testing.T) { // F28
	t.Parallel()
	inMore := func(_ context.Context, h halved) (lock.Key, error) {
		name, _ := h.More["a"].(string)
		return lock.Key{Name: "n", Event: fmt.Sprintf("%x", sha256.Sum256([]byte(name)))}, nil
	}
	refused := []string{`{"id":"\ud800"}`, `{"id":"\uDBFF"}`, `{"id":"a\udc00b","more":{"a":"b"}}`, `{"id":"\ud800\u0041"}`, `{"id":"\ud800\ud83d\ude00"}`, `{"id":"\ude00\ud83d"}`, `{"id":"\\\ud800"}`}
	kept := []string{
		`{"id":"1","note":"\ud800"}`, `{"id":"1","note":"\udbff"}`, `{"id":"\ud83d\ude00","note":"\udc00"}`, `{"id":"\\ud800"}`, `{"id":"\ufffd"}`, "{\"id\":\"\ufffd\"}",
		`{"id":"\\\\ud800","note":"\ud800"}`, `{"id":"1","\ud800":"x"}`, `{"id":"\ue000"}`,
	}
	for name, use := range carriers(byID) {
		seen := map[lock.Key]string{}
		for _, text := range refused {
			k, err := use(t.Context(), text)
			var e *lock.NoKeyError
			if !errors.As(err, &e) || !strings.Contains(e.Reason, "surrogate") || e.Client != (name == "HTTPBody") {
				t.Errorf("%s of %s: %+v, %v", name, text, k, err)
			}
		}
		for _, text := range kept {
			k, err := use(t.Context(), text)
			if err != nil {
				t.Errorf("%s of %s: %v", name, text, err)
			}
			seen[k] = text
		}
		if len(seen) != 6 { // three have the id 1, and two are one text
			t.Errorf("%s: %d keys: %q", name, len(seen), seen)
		}
	}
	for name, use := range carriers(inMore) {
		if k, err := use(t.Context(), `{"more":{"a":"\ud800"}}`); err == nil {
			t.Errorf("%s of a digest: %+v", name, k)
		}
		if _, err := use(t.Context(), `{"id":"\ud800","more":{"a":"x"}}`); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	calls := 0
	counted := func(ctx context.Context, h halved) (lock.Key, error) { calls++; return byID(ctx, h) }
	for name, use := range carriers(counted) {
		calls = 0
		if _, err := use(t.Context(), `{"id":"\ud83d\ude00"}`); calls != 1 || err != nil {
			t.Errorf("%s asks %d times for a key without halves, %v", name, calls, err)
		}
	}
	for name, use := range carriers(jmespath.Path("id")) { // keeps halves
		first, err := use(t.Context(), `{"id":"\ud800"}`)
		second, errSecond := use(t.Context(), `{"id":"\udbff"}`)
		if first.Name == second.Name || err != nil || errSecond != nil {
			t.Errorf("%s: %+v, %v and %+v, %v", name, first, err, second, errSecond)
		}
	}
}

// TestHMACInParallel shows that one key function serves records that are
// handled at the same time.
func TestHMACInParallel(t *testing.T) {
	t.Parallel()
	key := keyfuncs.HMAC(keyfuncs.ByField(strings.Clone), []byte("a secret of 16 bytes"))
	var all sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		want := keyOf(t, key, id)
		all.Go(func() {
			for range 1000 {
				if k, err := key(t.Context(), id); k != want || err != nil {
					t.Errorf("%+v, %v; want %+v", k, err, want)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestLostCharacters shows that a key is refused if it was made of what Go has
// decoded as U+FFFD before.
func TestLostCharacters(t *testing.T) { // F28
	t.Parallel()
	caller := plainREST()
	caller.RequestContext.Authorizer = map[string]any{"principalId": "a\ufffd"}
	context := plainREST()
	context.RequestContext.Authorizer = map[string]any{"principalId": "user", "id": "a\ufffd"}
	for name, use := range map[string]func() (lock.Key, error){
		"ByField": func() (lock.Key, error) {
			return keyfuncs.ByField(func(h halved) string { return h.ID })(t.Context(), halved{ID: "a\ufffd"})
		},
		"not UTF-8": func() (lock.Key, error) {
			return keyfuncs.ByField(func(h halved) string { return h.ID })(t.Context(), halved{ID: "\xff"})
		},
		"Path": func() (lock.Key, error) {
			return jmespath.Typed[halved](jmespath.Path("id"))(t.Context(), halved{ID: "a\ufffd"})
		},
		"Payload": func() (lock.Key, error) {
			return jmespath.Typed[halved](jmespath.Payload)(t.Context(), halved{Note: "\xff"})
		},
		"principal": func() (lock.Key, error) { return keyfuncs.IdempotencyKey(t.Context(), caller) },
		"context":   func() (lock.Key, error) { return keyfuncs.IdempotencyKey(t.Context(), context) },
	} {
		k, err := use()
		if e := new(lock.NoKeyError); !errors.As(err, &e) || !strings.Contains(e.Reason, "U+FFFD") {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
	for _, h := range []halved{{ID: "a", Note: "\ufffd"}, {ID: "a", Note: "\xff"}} {
		if k, err := jmespath.Typed[halved](jmespath.Path("id"))(t.Context(), h); err != nil || k.Name != `"a"` {
			t.Errorf("elsewhere: %+v, %v", k, err)
		}
	}
}
