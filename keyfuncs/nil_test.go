package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

// TestNilKeyFunctions shows that a constructor panics if it is given nil, in
// one line that names it, and not at the first event.
func TestNilKeyFunctions(t *testing.T) {
	t.Parallel()
	var none keyfuncs.Func[events.SQSMessage]
	type request = events.APIGatewayV2HTTPRequest
	some := keyfuncs.Func[events.SQSMessage](keyfuncs.SQSMessage)
	for name, use := range map[string]func(){
		"Prefix":            func() { keyfuncs.Prefix(none, "p") },
		"Once":              func() { keyfuncs.Once(none) },
		"Optional":          func() { keyfuncs.Optional(none) },
		"EventFrom":         func() { keyfuncs.EventFrom(some, none) },
		"PayloadFrom":       func() { keyfuncs.PayloadFrom(none, some) },
		"OrderFrom":         func() { keyfuncs.OrderFrom(some, none) },
		"Join":              func() { keyfuncs.Join(some, some, none) },
		"Hash":              func() { keyfuncs.Hash(none) },
		"HMAC":              func() { keyfuncs.HMAC(none, make([]byte, 16)) },
		"Single":            func() { keyfuncs.Single[events.SQSEvent](none) },
		"SQSBody":           func() { keyfuncs.SQSBody(none) },
		"SNSBody":           func() { keyfuncs.SNSBody(none) },
		"KinesisBody":       func() { keyfuncs.KinesisBody(none) },
		"EventBridgeDetail": func() { keyfuncs.EventBridgeDetail(none) },
		"CustomBusData":     func() { keyfuncs.CustomBusData(none) },
		"HTTPBody":          func() { keyfuncs.HTTPBody[request](none) },
		"HeaderKey":         func() { keyfuncs.HeaderKey[request]("Idempotency-Key", nil) },
	} {
		t.Run(name, func(t *testing.T) { panics(t, use, "keyfuncs."+name+": ", "nil") })
	}
	for name, use := range map[string]func(){
		"no header":   func() { keyfuncs.HeaderKey("", keyfuncs.Caller[request]) },
		"odd header":  func() { keyfuncs.HeaderKey("Idempotency Key", keyfuncs.Caller[request]) },
		"a colon":     func() { keyfuncs.HeaderKey("Idempotency-Key:", keyfuncs.Caller[request]) },
		"delete":      func() { keyfuncs.HeaderKey("Idempotency-Key\x7f", keyfuncs.Caller[request]) },
		"no request":  func() { keyfuncs.HeaderKey("Idempotency-Key", some) },
		"no requests": func() { keyfuncs.HTTPBody[events.SQSEvent](some) },
	} {
		t.Run(name, func(t *testing.T) { panics(t, use, "keyfuncs.H") })
	}
	panics(t, func() { keyfuncs.Static("") }, "keyfuncs.Static", "setting")
}

func panics(t *testing.T, use func(), within ...string) {
	t.Helper()
	defer func() {
		t.Helper()
		said, _ := recover().(string)
		for _, part := range within {
			if !strings.HasPrefix(said, "lambdalock: ") || !strings.Contains(said, part) || strings.Contains(said, "\n") {
				t.Errorf("panicked with %q, want one line with %q", said, part)
			}
		}
	}()
	use()
}
