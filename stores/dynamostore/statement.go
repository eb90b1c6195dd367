package dynamostore

import (
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// statement is a PartiQL text, and the placeholders whose values are its
// parameters. The text has #event where the event belongs, because PartiQL
// takes no parameter for a name.
type statement struct {
	text       string
	parameters []string
	returning  bool // the row as it was before
}

// shape is what an UpdateItem with constant expressions is in PartiQL.
type shape struct {
	claim  bool
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

// shapeOf translates a claim or a release. It reports false for any other
// request.
func shapeOf(table, update, condition string) (shape, bool) {
	claim := strings.HasPrefix(update, acquireUpdate)
	release := strings.HasPrefix(update, releaseSet) && condition == ifOwner
	if !claim && !release {
		return shape{}, false
	}
	s := shape{claim: claim, update: updateStatement(table, update, condition)}
	if claim {
		s.insert = insertStatement(table, update)
		s.update.text, s.update.returning = s.update.text+" RETURNING ALL OLD *", true
	}
	return s, true
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
func updateStatement(table, update, condition string) statement {
	set, removed, _ := strings.Cut(update, " REMOVE ")
	text := `UPDATE "` + table + `" ` + set + " REMOVE " + strings.ReplaceAll(removed, ", ", " REMOVE ")
	text = strings.TrimSuffix(text, " REMOVE ") + ` WHERE "lock" = :lock AND ` + notExists.ReplaceAllString(condition, "$1 IS MISSING")
	return newStatement(strings.ReplaceAll(text, "#event", `"#event"`))
}

// insertStatement returns what the update makes of a name without a row.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.html
func insertStatement(table, update string) statement {
	set, _, _ := strings.Cut(strings.TrimPrefix(update, "SET "), " REMOVE ")
	return newStatement(`INSERT INTO "` + table + `" VALUE {'lock': :lock, '` + strings.NewReplacer(" = ", "': ", ", ", ", '").Replace(set) + `}`)
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

// maxCompanySize is the size of a request that travels together with others.
// They would all wait for a larger one.
const maxCompanySize = 16 << 10

// size returns about how many bytes the values have.
func (v values) size() int {
	n := 0
	for name, value := range v {
		n += len(name)
		switch value := value.(type) {
		case *types.AttributeValueMemberS:
			n += len(value.Value)
		case *types.AttributeValueMemberN:
			n += len(value.Value)
		case *types.AttributeValueMemberB:
			n += len(value.Value)
		case *types.AttributeValueMemberM:
			n += values(value.Value).size()
		}
	}
	return n
}
