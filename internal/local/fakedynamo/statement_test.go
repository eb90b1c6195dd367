package fakedynamo

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const (
	insertK = `INSERT INTO \"locks\" VALUE {'id': ?, 'a': ?}`
	updateK = `UPDATE \"locks\" SET a = ? WHERE \"id\" = ? AND a < ?`
)

// execute sends statements, each with its parameters, and returns the answers.
func execute(t testing.TB, s *Server, statements ...string) []any {
	t.Helper()
	status, answer := send(t, s, "BatchExecuteStatement", `{"Statements":[`+strings.Join(statements, ",")+`]}`)
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	return answer["Responses"].([]any)
}

func statementOf(text string, parameters ...string) string {
	return fmt.Sprintf(`{"Statement":"%s","Parameters":[%s],"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`, text, strings.Join(parameters, ","))
}

// TestStatements compares with the answers of DynamoDB Local 3.3.1.
func TestStatements(t *testing.T) {
	t.Parallel()
	const k, n1, n2, n3 = `{"S":"k"}`, `{"N":"1"}`, `{"N":"2"}`, `{"N":"3"}`
	const one, three = `{"id":{"S":"k"},"a":{"N":"1"}}`, `{"id":{"S":"k"},"a":{"N":"3"}}`
	missing := func(event string) string {
		return statementOf(`UPDATE \"locks\" SET a = ? WHERE \"id\" = ? AND (c IS MISSING OR m.\"`+event+`\" IS MISSING)`, n3, k)
	}
	cases := []struct{ name, before, statement, code, answer, after string }{
		{"insert", `{}`, statementOf(insertK, k, n1), "", `{"TableName":"locks"}`, one},
		{"insert again", `{"a":{"N":"1"}}`, statementOf(insertK, k, n3), "DuplicateItem", ``, one},
		{"update", `{"a":{"N":"1"}}`, statementOf(updateK, n3, k, n2), "", `{"TableName":"locks"}`, three},
		{"old item", `{"a":{"N":"1"}}`, statementOf(updateK+" RETURNING ALL OLD *", n3, k, n2), "", `{"TableName":"locks","Item":` + one + `}`, three},
		{"refused", `{"a":{"N":"3"}}`, statementOf(updateK, n1, k, n2), "ConditionalCheckFailed", three, three},
		{"no item", `{}`, statementOf(`UPDATE \"locks\" SET a = ? WHERE \"id\" = ? AND a IS MISSING`, n1, k), "ConditionalCheckFailed", ``, `null`},
		{"several removed", `{"b":{"N":"1"},"c":{"N":"2"},"a":{"N":"1"}}`, statementOf(`UPDATE \"locks\" SET a = ? REMOVE b REMOVE c WHERE \"id\" = ? AND a < ?`, n3, k, n2), "", `{"TableName":"locks"}`, three},
		{"member of a map", `{"c":{"N":"1"},"m":{"M":{"a.b":{"N":"1"}}}}`, missing("a.b"), "ConditionalCheckFailed", `{"id":{"S":"k"},"c":{"N":"1"},"m":{"M":{"a.b":{"N":"1"}}}}`, `{"id":{"S":"k"},"c":{"N":"1"},"m":{"M":{"a.b":{"N":"1"}}}}`},
		{"member like a placeholder", `{"a":{"N":"1"}}`, missing("#x"), "ValidationError", ``, one},
		{"too few parameters", `{"a":{"N":"1"}}`, statementOf(updateK, n3, k), "ValidationError", ``, one},
		{"too many parameters", `{"a":{"N":"1"}}`, statementOf(updateK, n3, k, n2, n2), "ValidationError", ``, one},
		{"another text", `{"a":{"N":"1"}}`, statementOf(`DELETE FROM \"locks\" WHERE \"id\" = ?`, k), "ValidationError", ``, one},
		{"wrong key", `{"a":{"N":"1"}}`, statementOf(updateK, n3, n1, n2), "ValidationError", ``, one},
		{"missing table", `{"a":{"N":"1"}}`, statementOf(strings.Replace(updateK, "locks", "other", 1), n3, k, n2), "ResourceNotFound", ``, one},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			put(t, s, c.before)
			got := execute(t, s, c.statement)[0].(map[string]any)
			failed, _ := got["Error"].(map[string]any)
			code, _ := failed["Code"].(string)
			if code != c.code {
				t.Fatalf("%v, want the code %q", got, c.code)
			}
			if code != "" {
				got, _ = failed["Item"].(map[string]any)
			}
			if c.answer == "" && got != nil || c.answer != "" && !reflect.DeepEqual(got, decoded(t, c.answer)) {
				t.Errorf("answer %v, want %s", got, c.answer)
			}
			wantItem(t, s, c.after)
		})
	}
}

// TestStatementsAreIndependent shows that one that is refused stops no other.
func TestStatementsAreIndependent(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	put(t, s, `{"a":{"N":"3"}}`)
	answers := execute(t, s, statementOf(insertK, `{"S":"k"}`, `{"N":"1"}`), statementOf(insertK, `{"S":"l"}`, `{"N":"1"}`))
	if len(answers) != 2 || s.Item("locks", "l") == nil || s.Requests() != 2 {
		t.Errorf("%v, item %v after %d requests", answers, s.Item("locks", "l"), s.Requests())
	}
}

func TestRefusedBatches(t *testing.T) {
	t.Parallel()
	many := make([]string, 26)
	for i := range many {
		many[i] = statementOf(insertK, fmt.Sprintf(`{"S":"k%d"}`, i), `{"N":"1"}`)
	}
	for name, statements := range map[string][]string{"none": {}, "too many": many, "one item twice": {many[0], many[1], many[0]}, "a read beside writes": {many[1], statementOf(`SELECT * FROM \"locks\" WHERE \"id\" = ?`, `{"S":"k"}`)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			status, answer := send(t, s, "BatchExecuteStatement", `{"Statements":[`+strings.Join(statements, ",")+`]}`)
			if status != http.StatusBadRequest || answer["__type"] != validateType+"ValidationException" || s.Item("locks", "k1") != nil {
				t.Errorf("%d %v", status, answer)
			}
		})
	}
}

func TestStatementFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault   Fault
		code    string
		applied bool
	}{
		{Throttle, "ProvisionedThroughputExceeded", false},
		{Conflict, "TransactionConflict", false},
		{Deny, "AccessDenied", false},
		{ApplyThen500, "InternalServerError", true},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.OnRequest(func(r Request) Fault {
				if r.Operation == "PartiQLInsert" && r.Key == "k" {
					return c.fault
				}
				return None
			})
			answers := execute(t, s, statementOf(insertK, `{"S":"k"}`, `{"N":"1"}`), statementOf(insertK, `{"S":"l"}`, `{"N":"1"}`))
			failed, _ := answers[0].(map[string]any)["Error"].(map[string]any)
			if failed["Code"] != c.code || s.Item("locks", "k") != nil != c.applied || s.Item("locks", "l") == nil {
				t.Errorf("%v, applied %v", answers, s.Item("locks", "k"))
			}
		})
	}
}

func TestDeniedBatch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.OnRequest(func(Request) Fault { return Deny })
	_, answer := send(t, s, "BatchExecuteStatement", `{"Statements":[`+statementOf(insertK, `{"S":"k"}`, `{"N":"1"}`)+`]}`)
	if message, _ := answer["message"].(string); !strings.Contains(message, "dynamodb:PartiQLInsert") || !strings.Contains(message, "table/locks") {
		t.Errorf("%v does not name the action and the table", answer)
	}
}
