package batching

import (
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/stores/dynamostore/internal/expression"
)

// statement is a PartiQL text, and the placeholders whose values are its
// parameters. The text has #event where the event belongs, because PartiQL
// takes no parameter for a name.
type statement struct {
	text       string
	parameters []string
	returning  bool // the row as it was before
}

// kind is what requests with the same expressions have in common.
type kind struct{ table, update, condition string }

// kindOf returns the kind of a request, and the name of its lock.
func kindOf(in *dynamodb.UpdateItemInput) (k kind, name string) {
	if key, ok := in.Key["lock"].(*types.AttributeValueMemberS); ok {
		name = key.Value
	}
	return kind{aws.ToString(in.TableName), aws.ToString(in.UpdateExpression), aws.ToString(in.ConditionExpression)}, name
}

func (k kind) claims() bool { return strings.HasPrefix(k.update, expression.Claim) }

func (k kind) releases() bool {
	return strings.HasPrefix(k.update, expression.Release) && k.condition == expression.Owner
}

// shape is what the requests of a kind are in PartiQL.
type shape struct {
	insert statement // of a claim: for a name without a row
	update statement // for a name with a row; UPDATE creates none
}

var (
	placeholder = regexp.MustCompile(`:\w+`)
	notExists   = regexp.MustCompile(`attribute_not_exists\(([\w.#]+)\)`)
	// plainEvent matches the events that are written into a text. A dot, a bracket
	// and a leading # or : mean something in a path on some servers.
	plainEvent = regexp.MustCompile(`^[\w/-][\w:/-]*$`)
)

// shapeOf translates a claim or a release.
func shapeOf(k kind) shape {
	s := shape{update: updateStatement(k)}
	if k.claims() {
		s.insert = insertStatement(k)
		s.update.text, s.update.returning = s.update.text+" RETURNING ALL OLD *", true
	}
	return s
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
func updateStatement(k kind) statement {
	set, removed, _ := strings.Cut(k.update, " REMOVE ")
	text := `UPDATE "` + k.table + `" ` + set + " REMOVE " + strings.ReplaceAll(removed, ", ", " REMOVE ")
	text = strings.TrimSuffix(text, " REMOVE ") + ` WHERE "lock" = :lock AND ` + notExists.ReplaceAllString(k.condition, "$1 IS MISSING")
	return newStatement(strings.ReplaceAll(text, "#event", `"#event"`))
}

// insertStatement returns what the update makes of a name without a row.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.html
func insertStatement(k kind) statement {
	set, _, _ := strings.Cut(strings.TrimPrefix(k.update, "SET "), " REMOVE ")
	return newStatement(`INSERT INTO "` + k.table + `" VALUE {'lock': :lock, '` + strings.NewReplacer(" = ", "': ", ", ", ", '").Replace(set) + `}`)
}

func newStatement(text string) statement {
	return statement{text: placeholder.ReplaceAllString(text, "?"), parameters: placeholder.FindAllString(text, -1)}
}

// of returns the statement with the values of in.
func (s statement) of(in *dynamodb.UpdateItemInput) types.BatchStatementRequest {
	text := strings.ReplaceAll(s.text, "#event", in.ExpressionAttributeNames["#event"])
	parameters := make([]types.AttributeValue, len(s.parameters))
	for i, name := range s.parameters {
		if parameters[i] = in.ExpressionAttributeValues[name]; name == ":lock" {
			parameters[i] = in.Key["lock"]
		}
	}
	return types.BatchStatementRequest{
		Statement: &text, Parameters: parameters,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}
}

// maxSize is the size of a request that travels together with others. They
// would all wait for a larger one.
const maxSize = 16 << 10

// size returns about how many bytes the values have.
func size(values map[string]types.AttributeValue) int {
	n := 0
	for name, value := range values {
		n += len(name)
		switch value := value.(type) {
		case *types.AttributeValueMemberS:
			n += len(value.Value)
		case *types.AttributeValueMemberN:
			n += len(value.Value)
		case *types.AttributeValueMemberB:
			n += len(value.Value)
		case *types.AttributeValueMemberM:
			n += size(value.Value)
		}
	}
	return n
}
