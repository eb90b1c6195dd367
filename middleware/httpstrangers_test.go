package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// sender is who sends a request, in the words of those who look from outside.
// Empty text: without.
type sender struct {
	Tenant, Domain, Forwarded    string
	Login                        string // of the user whom the gateway authenticated, if it does
	Bearer, Session, Key, Noise  string // what the client sends
	Principal, Context, Identity string // what a Lambda authorizer, or a client that forges it, says
}

// deployment is an API and the function behind it.
type deployment struct {
	gateway string // rest, http, url, alb, albmulti
	auth    string // none, token, role, function, oidc
	way     string // value, stream, raw, any
	key     string // header, session, own, ownsession
	cookie  bool   // every answer sets one
	across  bool   // tenants share locks
}

// who is everything that AWS, or the code of the user, can know a sender by. A
// deployment that names its session cookies does not know him by others.
func (d deployment) who(s sender) [9]string {
	client := [4]string{s.Bearer, s.Session, s.Key, s.Noise}
	if strings.HasSuffix(d.key, "session") {
		client[3] = ""
	}
	place := s.Domain + " " + s.Forwarded
	switch d.auth {
	case "token":
		return [9]string{s.Tenant, place, s.Login}
	case "oidc":
		if s.Login != "" {
			return [9]string{s.Tenant, place, s.Login}
		}
		return [9]string{s.Tenant, place, "", s.Identity, client[0], client[1], client[2], client[3]}
	case "role": // of a proxy that signs for everybody
		return [9]string{s.Tenant, place, "", "", "", client[1], client[2], client[3]}
	case "function":
		return [9]string{s.Tenant, place, s.Principal, s.Context, client[0], client[1], client[2], client[3]}
	}
	return [9]string{s.Tenant, place, "", "", client[0], client[1], client[2], client[3]}
}

// mayRead is the oracle: it reports whether the second sender may get what the
// first one was answered.
func (d deployment) mayRead(first, second sender) bool {
	if d.who(first) != d.who(second) {
		return false
	}
	w := d.who(second)
	if d.auth == "function" && d.gateway != "http" {
		w[2] = "" // of everybody, as in the examples of AWS; an HTTP API has no principal, only a context
	}
	if d.auth == "oidc" && second.Login == "" {
		w[3] = "" // anybody may have written it
	}
	return !d.cookie || strings.Join(w[2:], "") != ""
}

var tokens = map[string]string{"alice": "token-of-alice", "mallory": "token-of-mallory"}

// event returns the JSON of a request of s, spelled as chance would have it.
func (d deployment) event(s sender, id string, r *rand.Rand) []byte {
	headers := [][2]string{{"idempotency-key", id}, {"x-order", id}, {"user-agent", fmt.Sprint(r.IntN(3))}}
	add := func(name, value string) {
		if value != "" {
			headers = append(headers, [2]string{name, value})
		}
	}
	add("x-forwarded-host", s.Forwarded)
	add("x-api-key", s.Key)
	c := map[string]any{"apiId": "a1", "stage": "prod"}
	authorizer := map[string]any{}
	switch d.auth {
	case "token":
		add("authorization", fmt.Sprint("Bearer ", r.IntN(3)))
		authorizer["claims"] = map[string]any{"iss": "i", "sub": s.Login}
		authorizer["jwt"] = map[string]any{"claims": map[string]any{"iss": "i", "sub": s.Login}}
	case "role":
		add("authorization", fmt.Sprint("AWS4-HMAC-SHA256 ", r.IntN(3)))
		c["identity"] = map[string]any{"caller": fmt.Sprint("AROAPROXY:", r.IntN(3))}
		authorizer["iam"] = map[string]any{"callerId": fmt.Sprint("AROAPROXY:", r.IntN(3))}
	case "function":
		add("authorization", s.Bearer)
		authorizer["principalId"], authorizer["integrationLatency"] = s.Principal, r.IntN(3)
		said := map[string]any{}
		if s.Context != "" {
			authorizer["user"], said["user"] = s.Context, s.Context
		}
		if d.gateway == "http" { // has no principal
			said["principalId"] = s.Principal
			authorizer["lambda"] = said
		}
	case "oidc":
		add("x-amzn-oidc-accesstoken", tokens[s.Login])
		if s.Login == "" {
			add("authorization", s.Bearer)
			add("x-amzn-oidc-identity", s.Identity)
		}
		add("x-amzn-oidc-identity", s.Login)
	default:
		add("authorization", s.Bearer)
	}
	var cookies []string
	for name, value := range map[string]string{"session": s.Session, "_ga": s.Noise} {
		if value != "" {
			cookies = append(cookies, name+"="+value)
		}
	}
	e := map[string]any{"body": `{"order":7}`, "requestContext": c}
	if len(cookies) > 0 {
		if d.gateway == "http" || d.gateway == "url" {
			e["cookies"] = cookies
		} else {
			add("cookie", strings.Join(cookies, "; "))
		}
	}
	add("host", s.Domain)
	return d.wrap(e, c, authorizer, headers, s, r)
}

func (d deployment) wrap(e, c, authorizer map[string]any, headers [][2]string, s sender, r *rand.Rand) []byte {
	single, multi := map[string]string{}, map[string][]string{}
	for _, h := range headers {
		name := h[0]
		if r.IntN(2) == 0 {
			name = strings.ToUpper(name)
		}
		single[name], multi[name] = h[1], []string{h[1]}
	}
	switch d.gateway {
	case "rest":
		e["httpMethod"], e["path"], e["headers"], e["multiValueHeaders"] = "POST", "/orders", single, multi
		c["domainName"] = s.Domain
		delete(authorizer, "jwt")
		delete(authorizer, "iam")
	case "http", "url":
		e["version"], e["rawPath"], e["headers"] = "2.0", "/orders", single
		c["http"], c["domainName"] = map[string]any{"method": "POST"}, s.Domain
		for _, name := range []string{"claims", "principalId", "integrationLatency", "user"} {
			delete(authorizer, name)
		}
		delete(c, "identity")
		if d.gateway == "url" {
			c["domainName"] = s.Domain + ".lambda-url.eu-west-1.on.aws"
		}
	case "alb":
		e["httpMethod"], e["path"], e["headers"], e["requestContext"] = "POST", "/orders", single, map[string]any{"elb": map[string]any{"targetGroupArn": "arn"}}
	case "albmulti":
		e["httpMethod"], e["path"], e["multiValueHeaders"], e["requestContext"] = "POST", "/orders", multi, map[string]any{"elb": map[string]any{"targetGroupArn": "arn"}}
	}
	if len(authorizer) > 0 {
		c["authorizer"] = authorizer
	}
	b, _ := json.Marshal(e) // text and numbers
	return b
}

// function is a wrapped handler that answers every request it runs for with a
// new number.
type function func(ctx context.Context, doc []byte) (json.RawMessage, error)

func functionOf[E any](d deployment, opts ...middleware.Option) function {
	order := keyfuncs.Once(func(ctx context.Context, e E) (lock.Key, error) {
		k, err := keyfuncs.HeaderKey("X-Order", keyfuncs.Anonymous[E])(context.WithoutCancel(context.Background()), e)
		return lock.Key{Name: k.Event}, err
	})
	key := map[string]keyfuncs.Func[E]{
		"header": keyfuncs.IdempotencyKey[E], "session": keyfuncs.HeaderKey("Idempotency-Key", keyfuncs.SessionCookie[E]("session")),
		"own": order, "ownsession": keyfuncs.PayloadFrom(order, keyfuncs.SessionCookie[E]("session")),
	}[d.key]
	runs := 0
	answer := func() any {
		runs++
		a := map[string]any{"statusCode": 201, "headers": map[string]string{"content-type": "text/plain"}, "body": fmt.Sprint(runs)}
		if d.cookie {
			a["headers"] = map[string]string{"Set-Cookie": "session=fresh"}
		}
		return a
	}
	result := func(out any, err error) (json.RawMessage, error) {
		b, _ := json.Marshal(out)
		return b, err
	}
	switch d.way {
	case "raw":
		h := middleware.WithLock(key, lambda.Handler(rawFunc(func([]byte) ([]byte, error) { b, _ := json.Marshal(answer()); return b, nil })), opts...)
		return func(ctx context.Context, doc []byte) (json.RawMessage, error) { return h.Invoke(ctx, doc) }
	case "any":
		h := middleware.WithLock(key, func(context.Context, any) (any, error) { return answer(), nil }, opts...)
		return func(ctx context.Context, doc []byte) (json.RawMessage, error) {
			var v any
			_ = json.Unmarshal(doc, &v)
			return result(h(ctx, v))
		}
	case "stream":
		h := middleware.WithLock(key, func(context.Context, E) (*events.APIGatewayProxyStreamingResponse, error) {
			a := answer().(map[string]any)
			return &events.APIGatewayProxyStreamingResponse{StatusCode: 201, Headers: a["headers"].(map[string]string), Body: strings.NewReader(a["body"].(string))}, nil
		}, opts...)
		return func(ctx context.Context, doc []byte) (json.RawMessage, error) {
			var e E
			_ = json.Unmarshal(doc, &e)
			out, err := h(ctx, e)
			if err != nil {
				return nil, err
			}
			body, err := io.ReadAll(out.Body)
			return toJSONText(map[string]any{"statusCode": out.StatusCode, "headers": out.Headers, "body": string(body)}), err
		}
	}
	h := middleware.WithLock(key, func(context.Context, E) (ownResponse, error) {
		var o ownResponse
		_ = json.Unmarshal(toJSONText(answer()), &o)
		return o, nil
	}, opts...)
	return func(ctx context.Context, doc []byte) (json.RawMessage, error) {
		var e E
		_ = json.Unmarshal(doc, &e)
		return result(h(ctx, e))
	}
}

func toJSONText(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}

func (d deployment) function() function {
	opts := []middleware.Option{middleware.Store(memstore.New()), noLog}
	if d.across {
		opts = append(opts, middleware.AcrossTenants())
	}
	switch d.gateway {
	case "rest":
		return functionOf[restEvent](d, opts...)
	case "http":
		return functionOf[v2Event](d, opts...)
	case "url":
		return functionOf[urlEvent](d, opts...)
	}
	return functionOf[albEvent](d, opts...)
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomDeployment(r *rand.Rand) deployment {
	gateway := pick(r, "rest", "http", "url", "alb", "albmulti")
	auth := map[string][]string{
		"rest": {"none", "token", "role", "function"}, "http": {"none", "token", "role", "function"}, "url": {"none", "role"},
		"alb": {"none", "oidc"}, "albmulti": {"none", "oidc"},
	}[gateway]
	return deployment{
		gateway, pick(r, auth...), pick(r, "value", "stream", "raw", "any"), pick(r, "header", "session", "own", "ownsession"),
		r.IntN(2) == 0, r.IntN(2) == 0,
	}
}

// change changes one thing of a sender.
func change(r *rand.Rand, s *sender) {
	switch r.IntN(11) {
	case 0:
		s.Tenant = pick(r, "", "blue", "red")
	case 1:
		s.Domain = pick(r, "shop.example", "outlet.example")
	case 2:
		s.Forwarded = pick(r, "", "shop.example", "brand.example")
	case 3:
		s.Login = pick(r, "", "alice", "mallory")
	case 4:
		s.Bearer = pick(r, "", "Bearer a", "Bearer m")
	case 5:
		s.Session = pick(r, "", "a", "m")
	case 6:
		s.Key = pick(r, "", "a", "m")
	case 7:
		s.Noise = pick(r, "", "1", "2")
	case 8:
		s.Principal = pick(r, "user", "alice")
	case 9:
		s.Context = pick(r, "", "a", "m")
	case 10:
		s.Identity = pick(r, "", "alice", "mallory")
	}
}

// TestNoAnswerToAStranger compares what pairs of senders of one request get
// with an oracle that knows the senders and not the keys.
func TestNoAnswerToAStranger(t *testing.T) { // F28, F61
	t.Parallel()
	pairs := 100_000
	if testing.Short() {
		pairs = 4_000
	}
	r := rand.New(rand.NewPCG(7, 28))
	functions := map[deployment]function{}
	replays, same := 0, 0
	for i := range pairs {
		d := randomDeployment(r)
		if functions[d] == nil {
			functions[d] = d.function()
		}
		first := sender{Domain: "shop.example", Principal: "user"}
		for range r.IntN(12) {
			change(r, &first)
		}
		second := first
		for range r.IntN(3) {
			change(r, &second)
		}
		if d.auth == "token" {
			first.Login, second.Login = orElse(first.Login, "alice"), orElse(second.Login, "alice")
		}
		got, err := functions[d](ofTenant(t.Context(), first.Tenant), d.event(first, fmt.Sprint(i), r))
		again, errAgain := functions[d](ofTenant(t.Context(), second.Tenant), d.event(second, fmt.Sprint(i), r))
		if err != nil || errAgain != nil {
			t.Fatalf("%+v: %v, %v", d, err, errAgain)
		}
		replayed := answerIn(got) == answerIn(again)
		if replayed {
			replays++
		}
		may := d.mayRead(first, second)
		if may {
			same++
		}
		if replayed != may {
			t.Fatalf("pair %d: replayed %t, may read %t:\n%+v\n%+v: %s\n%+v: %s", i, replayed, may, d, first, got, second, again)
		}
	}
	t.Logf("%d pairs, %d of one caller, %d replays", pairs, same, replays)
	if replays < pairs/10 || replays > pairs*9/10 {
		t.Errorf("%d of %d pairs were replayed, which tests little", replays, pairs)
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// answerIn returns the number of the run that a response has.
func answerIn(doc json.RawMessage) string {
	var r struct{ Body string }
	_ = json.Unmarshal(doc, &r)
	if strings.HasPrefix(r.Body, "{") { // a problem document
		return string(doc)
	}
	return r.Body
}
