package integration_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// TestTransactionsAlike sends the same transactions to every server, the
// embedded one among them, and compares how each is answered and what it leaves
// behind. Where a server does not do what AWS documents, the step says so.
func TestTransactionsAlike(t *testing.T) {
	const (
		ok       = "200"
		invalid  = "ValidationException"
		mismatch = "IdempotentParameterMismatchException"
		local    = "DynamoDBLocal"
		debit    = `,"UpdateExpression":"SET n = n - :v","ConditionExpression":"n >= :v","ExpressionAttributeValues":{":v":{"N":"3"}}`
		count    = `,"UpdateExpression":"SET n = if_not_exists(n, :z) + :o","ExpressionAttributeValues":{":z":{"N":"0"},":o":{"N":"1"}}`
		check    = `,"ConditionExpression":"attribute_not_exists(id)"`
		old      = `,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`
	)
	act := func(action, table, key, more string) string {
		return `{"` + action + `":{"TableName":"` + table + `","Key":{"id":{"S":"` + key + `"}}` + more + `}}`
	}
	put := func(table, key, more string) string {
		return `{"Put":{"TableName":"` + table + `","Item":{"id":{"S":"` + key + `"},"n":{"N":"10"}}` + more + `}}`
	}
	many := func(n int, action func(int) string) string {
		var all []string
		for i := range n {
			all = append(all, action(i))
		}
		return strings.Join(all, ",")
	}
	counts := func(i int) string { return act("Update", "aaa", fmt.Sprint("many", i), count) }
	bulky := func(i int) string {
		return fmt.Sprintf(`{"Put":{"TableName":"aaa","Item":{"id":{"S":"bulky%d"},"v":{"S":"%s"}}}}`, i, strings.Repeat("x", 390<<10))
	}
	steps := []struct {
		name, token, actions, want string
		but                        map[string]string // what a server answers instead
	}{
		{"two tables", "", put("aaa", "x", check) + "," + put("bbb", "x", check), ok, nil},
		{"again", "", put("aaa", "x", check) + "," + put("bbb", "y", check), "[ConditionalCheckFailed None]", nil},
		{"with the item", "", put("aaa", "y", check) + "," + act("ConditionCheck", "aaa", "x", check+old), "[None ConditionalCheckFailed map[id:map[S:x] n:map[N:10]]]", nil},
		{"with no item", "", act("ConditionCheck", "aaa", "none", `,"ConditionExpression":"attribute_exists(id)"`+old), "[ConditionalCheckFailed]", nil},
		{"debit and credit", "", act("Update", "aaa", "x", debit) + "," + act("Update", "bbb", "x", count), ok, nil},
		{"too much", "", act("Update", "aaa", "x", strings.Replace(debit, `"3"`, `"8"`, 1)) + "," + act("Update", "bbb", "x", count), "[ConditionalCheckFailed None]", nil},
		{"delete", "", act("Delete", "bbb", "x", `,"ConditionExpression":"attribute_exists(id)"`) + "," + act("Delete", "bbb", "none", ""), ok, nil},
		{"a missing attribute", "", act("Update", "aaa", "none", `,"UpdateExpression":"SET n = n - :v","ExpressionAttributeValues":{":v":{"N":"1"}}`), "[ValidationError]", map[string]string{local: invalid}},
		{"the type of an attribute", "", act("Update", "aaa", "x", `,"UpdateExpression":"SET n = id - :v","ExpressionAttributeValues":{":v":{"N":"1"}}`), "[ValidationError]", map[string]string{local: invalid}},
		{"a condition before a missing attribute", "", act("Update", "aaa", "none", debit), "[ConditionalCheckFailed]", nil},
		{"an item grows too large", "", put("aaa", "z", "") + "," + act("Update", "aaa", "x", `,"UpdateExpression":"SET v = :v","ExpressionAttributeValues":{":v":{"S":"`+strings.Repeat("x", 400<<10-2)+`"}}`), "[None ValidationError]", nil},
		{"a put too large", "", strings.Replace(bulky(0), `"x`, `"`+strings.Repeat("x", 10<<10), 1), invalid, nil},
		{"another schema", "", put("aaa", "z", "") + `,{"Delete":{"TableName":"aaa","Key":{"ix":{"S":"x"}}}}`, "[None ValidationError]", map[string]string{local: invalid}},
		{"a put of another type", "", put("aaa", "z", "") + `,{"Put":{"TableName":"aaa","Item":{"id":{"N":"1"}}}}`, "[None ValidationError]", nil},
		{"no actions", "", "", invalid, nil},
		{"101 actions", "", many(101, counts), invalid, nil},
		{"100 actions", "", many(100, counts), ok, nil},
		{"4 MB", "", many(11, bulky), invalid, nil},
		{"less than 4 MB", "", many(10, bulky), ok, nil},
		{"one item twice", "", act("Update", "aaa", "x", count) + "," + act("Delete", "aaa", "x", ""), invalid, nil},
		{"one key in two tables", "", act("Update", "aaa", "k", count) + "," + act("Update", "bbb", "k", count), ok, nil},
		{"no table", "", act("Update", "aaa", "x", count) + "," + act("Update", "none", "x", count), "ResourceNotFoundException", nil},
		{"no action", "", `{}`, invalid, nil},
		{"an empty key", "", act("Delete", "aaa", "", ""), invalid, nil},
		{"a check without condition", "", act("ConditionCheck", "aaa", "x", ""), invalid, nil},
		{"an unknown value", "", put("aaa", "z", "") + "," + act("Update", "aaa", "x", `,"UpdateExpression":"SET n = :v","ExpressionAttributeValues":{":w":{"N":"1"}}`), invalid, map[string]string{"dynoxide": "[None ValidationError]"}},
		{"a token", "t", act("Update", "aaa", "t", count), ok, nil},
		{"a token again", "t", act("Update", "aaa", "t", count), ok, nil},
		{"a token for another transaction", "t", act("Update", "aaa", "u", count), mismatch, nil},
		{"a token too long", strings.Repeat("t", 37), act("Update", "aaa", "t", count), invalid, nil},
		{"a token of a condition that would fail now", "c", put("aaa", "c", check), ok, nil},
		{"a token of a condition that would fail now, again", "c", put("aaa", "c", check), ok, nil},
		{"a token, canceled", "l", act("Delete", "aaa", "later", `,"ConditionExpression":"attribute_exists(id)"`), "[ConditionalCheckFailed]", nil},
		{"what it waits for", "", put("aaa", "later", ""), ok, nil},
		{"a token, no longer canceled", "l", act("Delete", "aaa", "later", `,"ConditionExpression":"attribute_exists(id)"`), ok, nil},
		{"a token, canceled, for another transaction", "m", put("aaa", "c", check), "[ConditionalCheckFailed]", nil},
		{"which counts as the first", "m", act("Delete", "aaa", "other", ""), ok, nil},
	}
	const items = `{"x":{"id":{"S":"x"},"n":{"N":"7"}},"y":null,"z":null,"none":null,"k":{"id":{"S":"k"},"n":{"N":"1"}},"many99":{"id":{"S":"many99"},"n":{"N":"1"}},"t":{"id":{"S":"t"},"n":{"N":"1"}},"u":null,"later":null}`
	for _, backend := range tableServers {
		t.Run(backend.name, func(t *testing.T) {
			s := backend.start(t)
			rt := newTransport()
			t.Cleanup(rt.CloseIdleConnections)
			for _, name := range []string{"aaa", "bbb"} {
				createTable(t, newClient(s.Endpoint, rt), name, "id")
			}
			run := rand.Text()[:8] // an account remembers tokens longer than a run takes
			for _, step := range steps {
				body := `{"TransactItems":[` + step.actions + `]`
				if step.token != "" {
					body += `,"ClientRequestToken":"` + step.token + run + `"`
				}
				want := step.want
				if other, ok := step.but[backend.name]; ok {
					want = other
				}
				if got := told(post(t, s, "TransactWriteItems", body+`}`)); got != want {
					t.Errorf("%s: %s, want %s", step.name, got, want)
				}
			}
			var want map[string]any
			expect.Must(t, json.Unmarshal([]byte(items), &want))
			for key, item := range want {
				_, answer := post(t, s, "GetItem", `{"TableName":"aaa","Key":{"id":{"S":"`+key+`"}},"ConsistentRead":true}`)
				if got := fmt.Sprint(answer["Item"]); got != fmt.Sprint(item) {
					t.Errorf("item %s is %s, want %v", key, got, item)
				}
			}
		})
	}
}

// post sends one request, without the SDK, which would refuse some of them.
func post(t *testing.T, s servers.Server, operation, body string) (int, map[string]any) {
	t.Helper()
	r := expect.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, s.Endpoint, strings.NewReader(body)))(t)
	for name, value := range map[string]string{
		"X-Amz-Target": "DynamoDB_20120810." + operation, "Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20261121T120000Z",
		"Authorization": "AWS4-HMAC-SHA256 Credential=id/20261121/" + region + "/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=0",
	} {
		r.Header.Set(name, value)
	}
	rt := newTransport()
	defer rt.CloseIdleConnections()
	res := expect.Value(rt.RoundTrip(r))(t)
	defer res.Body.Close()
	var answer map[string]any
	expect.Must(t, json.NewDecoder(res.Body).Decode(&answer))
	return res.StatusCode, answer
}

// told returns the reasons of a canceled transaction with their items, the type
// of any other error, or the status.
func told(status int, answer map[string]any) string {
	if reasons, ok := answer["CancellationReasons"].([]any); ok {
		var words []string
		for _, r := range reasons {
			r := r.(map[string]any)
			words = append(words, fmt.Sprint(r["Code"]))
			if item, ok := r["Item"]; ok {
				words = append(words, fmt.Sprint(item))
			}
		}
		return fmt.Sprint(words)
	}
	if kind, ok := answer["__type"].(string); ok {
		_, kind, _ = strings.Cut(kind, "#")
		return kind
	}
	return fmt.Sprint(status)
}
