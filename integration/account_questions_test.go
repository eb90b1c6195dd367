package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// reply is what a server answered to a question that documents leave open, and
// what package batching takes for granted.
type reply struct{ question, answer, granted string }

// asker asks a table whose names begin with "allowed/" or "denied/".
type asker struct {
	ctx    context.Context
	client *dynamodb.Client
	table  string
}

// statements asks in one request.
func (q asker) statements(all ...types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
	out, err := q.client.BatchExecuteStatement(q.ctx, &dynamodb.BatchExecuteStatementInput{Statements: all})
	if err != nil {
		return make([]types.BatchStatementResponse, len(all)), err
	}
	return out.Responses, nil
}

// update is a statement like that of a claim, which succeeds if the row has n.
func (q asker) update(name, n string) types.BatchStatementRequest {
	return types.BatchStatementRequest{
		Statement:                           aws.String(`UPDATE "` + q.table + `" SET n = ? REMOVE b REMOVE c WHERE "lock" = ? AND n = ? RETURNING ALL OLD *`),
		Parameters:                          []types.AttributeValue{text("2"), text(name), text(n)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func (q asker) put(names ...string) error {
	for _, name := range names {
		item := map[string]types.AttributeValue{"lock": text(name), "n": text("1"), "b": text("b"), "c": text("c")}
		if _, err := q.client.PutItem(q.ctx, &dynamodb.PutItemInput{TableName: &q.table, Item: item}); err != nil {
			return err
		}
	}
	return nil
}

// ofBatches asks what a request of many statements means. The answers to its
// members are in one request, because it is about their company.
func (q asker) ofBatches() ([]reply, error) {
	if err := q.put("allowed/a", "allowed/b", "allowed/c", "allowed/d"); err != nil {
		return nil, err
	}
	insert := types.BatchStatementRequest{Statement: aws.String(`INSERT INTO "` + q.table + `" VALUE {'lock': ?}`), Parameters: []types.AttributeValue{text("allowed/c")}}
	r, err := q.statements(q.update("allowed/a", "1"), q.update("allowed/b", "9"), q.update("allowed/none", "1"), insert, q.update("allowed/d", "1"))
	if err != nil {
		return []reply{{"a request of five statements", said(err), "answered"}}, nil
	}
	row, err := q.client.GetItem(q.ctx, &dynamodb.GetItemInput{TableName: &q.table, Key: map[string]types.AttributeValue{"lock": text("allowed/a")}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return []reply{
		{"an UPDATE with REMOVE b REMOVE c leaves", attributes(row.Item), "lock, n"},
		{"RETURNING ALL OLD * of a member returns", memberAnswer(r[0]), "granted with b, c, lock, n"},
		{"a member that is refused returns", memberAnswer(r[1]), "ConditionalCheckFailed with b, c, lock, n"},
		{"an UPDATE of a name without a row returns", memberAnswer(r[2]), "ConditionalCheckFailed"},
		{"an INSERT of a name with a row returns", memberAnswer(r[3]), "DuplicateItem"},
		{"a member after refused ones returns", memberAnswer(r[4]), "granted with b, c, lock, n"},
	}, nil
}

// ofPermissions asks what a permission for the names that begin with "allowed/"
// means. The rows are there.
func (q asker) ofPermissions() []reply {
	item := func(name string) string {
		_, err := q.client.UpdateItem(q.ctx, &dynamodb.UpdateItemInput{
			TableName: &q.table, Key: map[string]types.AttributeValue{"lock": text(name)}, UpdateExpression: aws.String("SET n = :n"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": text("1")},
		})
		return said(err)
	}
	replies := []reply{
		{"dynamodb:LeadingKeys lets UpdateItem of its names", item("allowed/a"), "granted"},
		{"dynamodb:LeadingKeys lets UpdateItem of other names", item("denied/a"), "AccessDeniedException"},
	}
	one, err := q.statements(q.update("allowed/a", "1"))
	replies = append(replies, reply{"dynamodb:LeadingKeys lets a statement of its names", either(err, memberAnswer(one[0])), "granted with lock, n"})
	two, err := q.statements(q.update("denied/a", "1"), q.update("allowed/a", "2"))
	return append(replies,
		reply{"a statement of another name, in company, returns", either(err, memberAnswer(two[0])), "AccessDenied"},
		reply{"a statement of its names, in company of that, returns", either(err, memberAnswer(two[1])), "granted with lock, n"})
}

// either is the error of the whole request, or the answer to a member.
func either(err error, answer string) string {
	if err != nil {
		return "the whole request: " + said(err)
	}
	return answer
}

// said is an error in the words of the service, without what it says of the
// account.
func said(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return "granted"
	case errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied"):
		return api.ErrorCode()
	case errors.As(err, &api):
		return api.ErrorCode() + ": " + withoutAccount(api.ErrorMessage())
	}
	return withoutAccount(err.Error())
}

var ofAccounts = regexp.MustCompile(`arn:[^\s"]+|\b\d{12}\b|\b(AKIA|ASIA)\w+`)

func withoutAccount(text string) string { return ofAccounts.ReplaceAllString(text, "…") }

// memberAnswer is the answer to a statement.
func memberAnswer(r types.BatchStatementResponse) string {
	answer, item := "granted", r.Item
	if r.Error != nil {
		answer, item = string(r.Error.Code), r.Error.Item
	}
	if r.Error != nil && (r.Error.Code == types.BatchStatementErrorCodeEnumValidationError) {
		answer += ": " + withoutAccount(aws.ToString(r.Error.Message))
	}
	if len(item) > 0 {
		answer += " with " + attributes(item)
	}
	return answer
}

// attributes names those of a row.
func attributes(item map[string]types.AttributeValue) string {
	return strings.Join(slices.Sorted(maps.Keys(item)), ", ")
}

// ask asks the account what only AWS can tell. The profile limited has the
// permissions of policy-limited.json; empty: it is not asked about them.
func (a *awsAccount) ask(ctx context.Context, limited string) (replies []reply, err error) {
	g := a.gateway("dynamodb")
	defer func() { err = errors.Join(err, g.end(ctx)) }()
	client := newClient(g.server.URL, a.transport)
	if err := dynamostore.EnsureTable(ctx, client, table); err != nil {
		return nil, err
	}
	if replies, err = (asker{ctx, client, table}).ofBatches(); err != nil || limited == "" {
		return replies, err
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithSharedConfigProfile(limited), config.WithRegion(a.cfg.Region))
	if err != nil {
		return nil, fmt.Errorf("LIMITED=%s: %w", limited, err)
	}
	// Not through the gateway, which signs with the other profile.
	return append(replies, asker{ctx, dynamodb.NewFromConfig(cfg), g.space + table}.ofPermissions()...), nil
}

// page is what a stranger can paste into an issue: it has nothing of the
// account.
func page(region string, replies []reply) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- to paste into an issue of lambdalock: what only AWS can tell ---\n\n%s, %s, aws-sdk-go-v2 %s\n\n", region, runtime.Version(), aws.SDKVersion)
	b.WriteString("| question | answer | as expected |\n|---|---|---|\n")
	for _, r := range replies {
		expected := "yes"
		if r.answer != r.granted {
			expected = "no: " + r.granted
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.question, r.answer, expected)
	}
	return b.String() + "\n--- end ---\n"
}

// TestQuestions: package batching takes for granted what these servers answer.
// Dynoxide does not parse a second REMOVE, so there each claim goes alone.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, s := range tableServers {
		if s.name == "dynoxide" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			checkReplies(t, expect.Value(asker{t.Context(), newTable(t, s.start(t)), table}.ofBatches())(t))
		})
	}
}

// TestQuestionsOfPermissions: the answers are told apart, with a server that
// denies what the library expects AWS to deny.
func TestQuestionsOfPermissions(t *testing.T) {
	t.Parallel()
	server := fakedynamo.New()
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	q := asker{t.Context(), newTable(t, servers.Server{Endpoint: srv.URL}), table}
	expect.Value(q.ofBatches())(t)
	for _, r := range q.ofPermissions() { // nothing is denied
		if denied := strings.HasPrefix(r.granted, "AccessDenied"); denied != (r.answer != r.granted) {
			t.Errorf("%s %q, want %q", r.question, r.answer, r.granted)
		}
	}
	server.OnRequest(func(r fakedynamo.Request) fakedynamo.Fault {
		if strings.HasPrefix(r.Key, "denied/") {
			return fakedynamo.Deny
		}
		return fakedynamo.None
	})
	checkReplies(t, q.ofPermissions())
}

// TestPage: it has nothing of the account, and says what was not expected.
func TestPage(t *testing.T) {
	t.Parallel()
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "User: arn:aws:iam::123456789012:user/me may not"}
	wrong := &smithy.GenericAPIError{Code: "ValidationException", Message: "table/locks of 123456789012, arn:aws:dynamodb:eu-west-1:123456789012:table/locks, is wrong"}
	got := page("eu-west-1", []reply{{"one", said(denied), "granted"}, {"two", said(wrong), said(wrong)}})
	for _, want := range []string{"| one | AccessDeniedException | no: granted |", "| two | ValidationException: table/locks of …, … is wrong | yes |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func checkReplies(t *testing.T, replies []reply) {
	t.Helper()
	for _, r := range replies {
		if r.answer != r.granted {
			t.Errorf("%s %q, want %q", r.question, r.answer, r.granted)
		}
	}
}
