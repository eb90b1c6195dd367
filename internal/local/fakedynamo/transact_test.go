package fakedynamo

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const counting = `,"UpdateExpression":"SET n = if_not_exists(n, :zero) + :one","ExpressionAttributeValues":{":zero":{"N":"0"},":one":{"N":"1"}}`

// newBank returns a server with the tables "locks" and "accounts", each with an
// item "old".
func newBank(t testing.TB) *Server {
	t.Helper()
	s := newServer(t)
	if status, answer := send(t, s, "CreateTable", locksTable("accounts")); status != http.StatusOK {
		t.Fatal(answer)
	}
	for _, table := range []string{"locks", "accounts"} {
		if status, answer := send(t, s, "PutItem", `{"TableName":"`+table+`","Item":{"id":{"S":"old"},"n":{"N":"7"},"s":{"S":"x"}}}`); status != http.StatusOK {
			t.Fatal(answer)
		}
	}
	return s
}

// in returns the members of an action on an item: its table, its key, and what
// follows.
func in(table, key, more string) string {
	return `{"TableName":"` + table + `","Key":{"id":{"S":"` + key + `"}}` + more + `}`
}

func updating(table, key, more string) string { return `{"Update":` + in(table, key, more) + `}` }

func transact(t testing.TB, s *Server, token string, actions ...string) (int, map[string]any) {
	t.Helper()
	body := `{"TransactItems":[` + strings.Join(actions, ",") + `]`
	if token != "" {
		body += `,"ClientRequestToken":"` + strings.TrimSpace(token) + `"`
	}
	return send(t, s, "TransactWriteItems", body+`}`)
}

func n(s *Server, table, key string) string {
	v, _ := s.Item(table, key)["n"].(map[string]any)
	text, _ := v["N"].(string)
	return text
}

// TestTransactionErrors: whatever is wrong with a transaction, nothing is
// written. TestTransactionsAlike of the integration tests has what it sends to
// other servers, too.
func TestTransactionErrors(t *testing.T) {
	t.Parallel()
	const check = `{"ConditionCheck":{"TableName":"locks","Key":{"id":{"S":"old"}},"ConditionExpression":"n = :v","ExpressionAttributeValues":{":v":{"N":"8"}}`
	many := func(count int) []string {
		var actions []string
		for i := range count {
			actions = append(actions, updating("locks", fmt.Sprint(i), counting))
		}
		return actions
	}
	cases := []struct {
		name    string
		actions []string
		want    string // the codes of the reasons, or the message
	}{
		{"a condition among others", append(many(2), check+"}}"), "[None, None, ConditionalCheckFailed]"},
		{"a key changes", append(many(1), updating("locks", "old", `,"UpdateExpression":"SET id = :v","ExpressionAttributeValues":{":v":{"S":"1"}}`)), "[None, ValidationError]"},
		{"a put without key", append(many(1), `{"Put":{"TableName":"locks","Item":{"n":{"N":"1"}}}}`), "[None, ValidationError]"},

		{"two actions in one", []string{`{"Delete":` + in("locks", "a", "") + `,"Update":` + in("locks", "b", counting) + `}`}, "TransactItems can only contain one of Check, Put, Update or Delete"},
		{"one item twice", append(many(1), `{"Put":{"TableName":"locks","Item":{"id":{"S":"0"}}}}`), "Transaction request cannot include multiple operations on one item"},
		{"no table", append(many(1), updating("none", "k", counting)), "Table: none not found"},
		{"an expression", append(many(1), updating("locks", "old", `,"UpdateExpression":"SET"`)), `fakedynamo does not support "<EOF>" after "SET"`},
		{"no update", append(many(1), updating("locks", "old", "")), "Invalid UpdateExpression: The expression can not be empty;"},
		{"an unused value", append(many(1), updating("locks", "old", `,"UpdateExpression":"REMOVE n","ExpressionAttributeValues":{":v":{"N":"1"}}`)), "unused in expressions: keys: {:v}"},
		{"a put with an empty value", append(many(1), `{"Put":{"TableName":"locks","Item":{"id":{"S":"k"},"v":{}}}}`), "must contain exactly one of the supported datatypes: v"},
		{"the old item, or what", append(many(1), check+`,"ReturnValuesOnConditionCheckFailure":"ALL_NEW"}}`), `fakedynamo does not support ReturnValuesOnConditionCheckFailure "ALL_NEW"`},
		{"a member of UpdateItem", append(many(1), updating("locks", "old", counting+`,"ReturnValues":"ALL_NEW"`)), `fakedynamo does not support the member "ReturnValues"`},
		{"a member of Update", append(many(1), `{"Delete":`+in("locks", "old", counting)+`}`), `fakedynamo does not support the member "UpdateExpression"`},
		{"a member of Put", append(many(1), `{"Delete":`+in("locks", "old", `,"Item":{"id":{"S":"old"}}`)+`}`), `fakedynamo does not support the member "Item"`},
		{"an unknown member", append(many(1), updating("locks", "old", counting+`,"Expected":{}`)), `fakedynamo does not support the member "Expected"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newBank(t)
			before := s.Item("locks", "old")
			status, answer := transact(t, s, "", c.actions...)
			kind, message := validateType+"ValidationException", fmt.Sprint(answer["message"])
			switch {
			case c.want[0] == '[':
				kind, message = dynamoType+"TransactionCanceledException", fmt.Sprint(answer["Message"])
				if want := "Transaction cancelled, please refer cancellation reasons for specific reasons " + c.want; message != want {
					t.Errorf("Message = %q, want %q", message, want)
				}
			case c.name == "no table":
				kind = dynamoType + "ResourceNotFoundException"
			}
			if status != http.StatusBadRequest || answer["__type"] != kind || !strings.Contains(message, c.want) {
				t.Errorf("%d %.500v, want %s: %s", status, answer, kind, c.want)
			}
			if s.Item("locks", "0") != nil || marshal(t, s.Item("locks", "old")) != marshal(t, before) {
				t.Error("something was written")
			}
		})
	}
}

// TestLargestTransaction: 100 actions, and as many bytes as fit.
func TestLargestTransaction(t *testing.T) {
	t.Parallel()
	s := newBank(t)
	var actions []string
	for i := range maxActions {
		actions = append(actions, fmt.Sprintf(`{"Put":{"TableName":"locks","Item":{"id":{"S":"%02d"},"v":{"S":"%s"}}}}`, i, strings.Repeat("x", maxTransactionBytes/100-len("id")-len("00")-len("v"))))
	}
	if status, answer := transact(t, s, "", actions...); status != http.StatusOK || s.Item("locks", "99") == nil {
		t.Errorf("%d %v", status, answer)
	}
	actions[0] = strings.Replace(actions[0], `"x`, `"`+strings.Repeat("x", maxTransactionBytes%100+2), 1)
	if status, _ := transact(t, s, "", actions...); status != http.StatusBadRequest {
		t.Error("a larger transaction was accepted")
	}
}

// TestReasons: each reason has the code, the message and, if the request asks
// for it, the item. The SDK understands them.
func TestReasons(t *testing.T) {
	t.Parallel()
	s := newBank(t)
	id := func(key string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key}}
	}
	check := func(key string, old types.ReturnValuesOnConditionCheckFailure) types.TransactWriteItem {
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String("accounts"), Key: id(key), ConditionExpression: aws.String("attribute_exists(nothing)"), ReturnValuesOnConditionCheckFailure: old,
		}}
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Delete: &types.Delete{TableName: aws.String("locks"), Key: id("old")}},
		check("old", types.ReturnValuesOnConditionCheckFailureAllOld), check("never", types.ReturnValuesOnConditionCheckFailureAllOld),
		{Put: &types.Put{TableName: aws.String("locks"), Item: map[string]types.AttributeValue{"x": &types.AttributeValueMemberS{}}}},
	}}
	for _, omit := range []bool{false, true} {
		s.OnRequest(func(Request) Fault {
			if omit {
				return OmitItem
			}
			return None
		})
		_, err := newClient(t, s).TransactWriteItems(t.Context(), in)
		var canceled *types.TransactionCanceledException
		if !errors.As(err, &canceled) {
			t.Fatal(err)
		}
		if got, want := canceled.ErrorMessage(), "[None, ConditionalCheckFailed, ConditionalCheckFailed, ValidationError]"; !strings.HasSuffix(got, want) {
			t.Errorf("message %q, want %s", got, want)
		}
		var codes, messages []string
		for _, r := range canceled.CancellationReasons {
			codes, messages = append(codes, aws.ToString(r.Code)), append(messages, aws.ToString(r.Message))
		}
		if want := []string{"None", "ConditionalCheckFailed", "ConditionalCheckFailed", "ValidationError"}; !slices.Equal(codes, want) {
			t.Errorf("codes %q", codes)
		}
		if want := []string{"", "The conditional request failed", "The conditional request failed", "One or more parameter values were invalid: Missing the key id in the item"}; !slices.Equal(messages, want) {
			t.Errorf("messages %q", messages)
		}
		item := canceled.CancellationReasons[1].Item
		if omit != (item == nil) || canceled.CancellationReasons[2].Item != nil {
			t.Errorf("items %v, %v", item, canceled.CancellationReasons[2].Item)
		}
		if s.Item("locks", "old") == nil {
			t.Fatal("an item was deleted")
		}
	}
}

// TestClientRequestToken: a repeated request has no effect, whatever the order
// of its members, until the token is forgotten.
func TestClientRequestToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newBank(t)
		count := updating("locks", "k", counting)
		reordered := `{"Update":{"ExpressionAttributeValues":{":one":{"N":"1"},":zero":{"N":"0"}},"UpdateExpression":"SET n = if_not_exists(n, :zero) + :one","Key":{"id":{"S":"k"}},"TableName":"locks"}}`
		last := tokenLife - time.Nanosecond
		for _, step := range []struct {
			name, token, action string
			wait                time.Duration
			n                   string
		}{
			{"first", "t", count, 0, "1"},
			{"another order", "t", reordered, last, "1"},
			{"forgotten", "t", count, time.Nanosecond, "2"},
			{"remembered again", "t", count, last, "2"},
			{"longest", strings.Repeat("t", 36), count, 0, "3"},
			{"refused: too long", strings.Repeat("t", 37), count, 0, "3"},
			{"refused: empty", " ", count, 0, "3"},
		} {
			time.Sleep(step.wait)
			status, answer := transact(t, s, step.token, step.action)
			if (status == http.StatusOK) != !strings.HasPrefix(step.name, "refused") || n(s, "locks", "k") != step.n {
				t.Errorf("%s: %v, n = %s, want %s", step.name, answer, n(s, "locks", "k"), step.n)
			}
		}
	})
}

func TestTransactionFaults(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		fault Fault
		code  string // of the answer, "" for none
		want  string // in its message
		count string
	}{
		{"drop before", DropBefore, "", "", ""},
		{"apply then drop", ApplyThenDrop, "", "", "1"},
		{"apply then 500", ApplyThen500, "InternalServerError", "", "1"},
		{"throttle", Throttle, "TransactionCanceledException", "[ThrottlingError, ThrottlingError]", ""},
		{"conflict", Conflict, "TransactionCanceledException", "[TransactionConflict, None]", ""},
		{"in progress", InProgress, "TransactionInProgressException", "", ""},
		{"deny", Deny, "AccessDeniedException", "dynamodb:UpdateItem on resource: arn:aws:dynamodb:us-east-1:123456789012:table/locks", ""},
		{"deny key", DenyKey, "AccessDeniedException", "kms:Decrypt", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newBank(t)
			before := s.Requests()
			s.OnRequest(func(Request) Fault { return c.fault })
			u := increment()
			_, err := newClient(t, s).TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{ConditionCheck: &types.ConditionCheck{TableName: aws.String("accounts"), Key: u.Key, ConditionExpression: aws.String("attribute_not_exists(id)")}},
				{Update: &types.Update{TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ExpressionAttributeValues: u.ExpressionAttributeValues}},
			}})
			if err == nil {
				t.Fatal("no error")
			}
			var api smithy.APIError
			if answered := errors.As(err, &api); answered != (c.code != "") || answered && (api.ErrorCode() != c.code || !strings.Contains(api.ErrorMessage(), c.want)) {
				t.Errorf("error = %v", err)
			}
			if got := count(s); got != c.count || s.Requests() != before+1 {
				t.Errorf("n = %q after %d requests, want %q after 1", got, s.Requests()-before, c.count)
			}
		})
	}
}

func TestDenyOfNoAction(t *testing.T) {
	t.Parallel()
	s := newBank(t)
	s.OnRequest(func(Request) Fault { return Deny })
	if _, answer := transact(t, s, "", `{}`); answer["__type"] != coralType+"AccessDeniedException" {
		t.Errorf("%v", answer)
	}
}

func TestOnRequestOfTransaction(t *testing.T) {
	t.Parallel()
	s := newBank(t)
	var got []Request
	s.OnRequest(func(r Request) Fault { got = append(got, r); return None })
	transact(t, s, "", updating("locks", "k", counting), `{"Put":{"TableName":"accounts","Item":{"a":{"S":"no"},"id":{"S":"put"}}}}`, `{}`, `{"Put":{"TableName":"none","Item":{"id":{"S":"put"}}}}`)
	send(t, s, "PutItem", `{"TableName":"accounts","Item":{"a":{"S":"no"},"id":{"S":"put"}}}`)
	send(t, s, "GetItem", in("locks", "k", ""))
	want := []string{"{TransactWriteItems  2 [k put ]}", "{PutItem put 3 []}", "{GetItem k 4 []}"}
	for i, r := range got {
		if text := fmt.Sprint(r); text != want[i] {
			t.Errorf("request %s, want %s", text, want[i])
		}
	}
	if len(got) != len(want) || s.Requests() != 4 {
		t.Errorf("%d requests, Requests() = %d", len(got), s.Requests())
	}
}

func TestPutAndGet(t *testing.T) {
	t.Parallel()
	s := newBank(t)
	const item = `{"id":{"S":"old"},"m":{"M":{"x":{"S":"y"}}}}`
	for _, step := range []struct{ name, operation, body, want string }{
		{"get", "GetItem", in("accounts", "old", `,"ConsistentRead":true`), `{"Item":{"id":{"S":"old"},"n":{"N":"7"},"s":{"S":"x"}}}`},
		{"get nothing", "GetItem", in("accounts", "never", ``), `{}`},
		{"replace", "PutItem", `{"TableName":"accounts","Item":` + item + `,"ReturnValues":"ALL_OLD"}`, `{"Attributes":{"id":{"S":"old"},"n":{"N":"7"},"s":{"S":"x"}}}`},
		{"create", "PutItem", `{"TableName":"accounts","Item":{"id":{"S":"new"}},"ReturnValues":"ALL_OLD"}`, `{}`},
		{"get again", "GetItem", in("accounts", "old", ``), `{"Item":` + item + `}`},
		{
			"condition", "PutItem", `{"TableName":"accounts","Item":{"id":{"S":"old"}},"ConditionExpression":"attribute_not_exists(id)","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`,
			`{"__type":"` + dynamoType + `ConditionalCheckFailedException","message":"The conditional request failed","Item":` + item + `}`,
		},
	} {
		if _, answer := send(t, s, step.operation, step.body); marshal(t, answer) != marshal(t, decoded(t, step.want)) {
			t.Errorf("%s: %v, want %s", step.name, answer, step.want)
		}
	}
}

func TestPutAndGetErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ operation, body, want string }{
		"put nothing":           {"PutItem", `{"TableName":"accounts"}`, "Missing the key id in the item"},
		"put without key":       {"PutItem", `{"TableName":"accounts","Item":{"a":{"S":"x"}}}`, "Missing the key id in the item"},
		"put with another key":  {"PutItem", `{"TableName":"accounts","Item":{"id":{"N":"1"}}}`, "Type mismatch for key id expected: S actual: N"},
		"put with an empty key": {"PutItem", `{"TableName":"accounts","Item":{"id":{"S":""}}}`, "cannot contain an empty string value. Key: id"},
		"put ALL_NEW":           {"PutItem", `{"TableName":"accounts","Item":{"id":{"S":"x"}},"ReturnValues":"ALL_NEW"}`, `fakedynamo does not support ReturnValues "ALL_NEW"`},
		"put no table":          {"PutItem", `{"TableName":"none","Item":{"id":{"S":"x"}}}`, "Table: none not found"},
		"put unused names":      {"PutItem", `{"TableName":"accounts","Item":{"id":{"S":"x"}},"ExpressionAttributeNames":{"#a":"b"}}`, "unused in expressions: keys: {#a}"},
		"get no table":          {"GetItem", in("none", "k", ""), "Table: none not found"},
		"get another key":       {"GetItem", `{"TableName":"accounts","Key":{"ix":{"S":"k"}}}`, "The provided key element does not match the schema"},
		"get an empty key":      {"GetItem", in("accounts", "", ""), "cannot contain an empty string value. Key: id"},
		"get a part":            {"GetItem", in("accounts", "k", `,"ProjectionExpression":"n"`), `fakedynamo does not support the member "ProjectionExpression"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := send(t, newBank(t), c.operation, c.body)
			if message, _ := answer["message"].(string); status != http.StatusBadRequest || !strings.Contains(message, c.want) {
				t.Errorf("%d %v, want %q", status, answer, c.want)
			}
		})
	}
}
