package fakedynamo

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxStatements is the service's limit on a batch.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
const maxStatements = 25

// statement is an element of BatchExecuteStatement: PartiQL in one of the two
// forms that the store of this module sends.
type statement struct {
	Statement                           string
	Parameters                          []value
	ReturnValuesOnConditionCheckFailure string

	kind   kind
	action *input // the same as an element of a transaction
	err    error
	fault  Fault
}

// statementAnswer is what became of one statement.
type statementAnswer struct {
	Error     *reason `json:",omitempty"`
	Item      item    `json:",omitempty"`
	TableName string  `json:",omitempty"`
}

// The texts, with numbered parameters.
var (
	insertText = regexp.MustCompile(`^INSERT INTO "([\w.-]+)" VALUE \{('\w+': :\d+(?:, '\w+': :\d+)*)\}$`)
	updateText = regexp.MustCompile(`^UPDATE "([\w.-]+)" (SET \w+ = :\d+(?:, \w+ = :\d+)*)((?: REMOVE \w+)*) WHERE "(\w+)" = (:\d+) AND (.*?)( RETURNING ALL OLD \*)?$`)
	pair       = regexp.MustCompile(`'(\w+)': (:\d+)`)
	parameter  = regexp.MustCompile(`\?`)
	member     = regexp.MustCompile(`\."([^"]+)"`)
	readText   = regexp.MustCompile(`(?i)^\s*SELECT\b`)
	isMissing  = regexp.MustCompile(`(\w+(?:\.#\w+)?) IS MISSING`)
)

// read turns the statement into the action that it means. It refuses all texts
// that it does not know.
func (s *statement) read() {
	values := item{}
	text := parameter.ReplaceAllStringFunc(s.Statement, func(string) string {
		n := len(values)
		name := ":" + strconv.Itoa(n)
		values[name] = value{}
		if n < len(s.Parameters) {
			values[name] = s.Parameters[n]
		}
		return name
	})
	s.action = &input{ReturnValuesOnConditionCheckFailure: s.ReturnValuesOnConditionCheckFailure}
	switch insert, update := insertText.FindStringSubmatch(text), updateText.FindStringSubmatch(text); {
	case len(values) != len(s.Parameters):
		s.err = invalid("Number of parameters in request and statement don't match.")
	case insert != nil:
		s.kind, s.action.TableName, s.action.Item = kindPut, insert[1], item{}
		for _, attribute := range pair.FindAllStringSubmatch(insert[2], -1) {
			s.action.Item[attribute[1]] = values[attribute[2]]
		}
	case update != nil:
		s.readUpdate(update, values)
	default:
		s.err = invalid("fakedynamo does not support the statement %q", s.Statement)
	}
}

func (s *statement) readUpdate(parts []string, values item) {
	in, key := s.action, parts[5]
	s.kind, in.TableName = kindUpdate, parts[1]
	in.Key = item{parts[4]: values[key]}
	delete(values, key)
	in.ExpressionAttributeValues = values
	in.UpdateExpression = parts[2]
	if removed := strings.Split(parts[3], " REMOVE "); len(removed) > 1 {
		in.UpdateExpression += " REMOVE " + strings.Join(removed[1:], ", ")
	}
	condition := member.ReplaceAllStringFunc(parts[6], func(quoted string) string {
		in.ExpressionAttributeNames = map[string]string{"#member": quoted[2 : len(quoted)-1]}
		return ".#member"
	})
	for _, name := range in.ExpressionAttributeNames {
		if strings.ContainsAny(name[:1], "#:") { // DynamoDB Local takes it for a placeholder
			s.err = invalid("Statement wasn't well formed, can't be processed: %q", name)
		}
	}
	condition = isMissing.ReplaceAllString(condition, "attribute_not_exists($1)")
	in.ConditionExpression = &condition
	if parts[7] != "" {
		in.ReturnValues = "ALL_OLD"
	}
}

// permission returns the action that IAM asks for.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-iam.html
func (s *statement) permission() string {
	if s.kind == kindPut {
		return "PartiQLInsert"
	}
	return "PartiQLUpdate"
}

// batchExecuteStatement carries out BatchExecuteStatement: each statement is
// applied or refused alone. It knows no reads, and none may be beside a write.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.batching.html
func (s *Server) batchExecuteStatement(in *input) (any, error) {
	if n := len(in.Statements); n == 0 || n > maxStatements {
		return nil, invalid("1 validation error detected: Value at 'statements' failed to satisfy constraint: Member must have length less than or equal to %d", maxStatements)
	}
	type target struct{ table, key string }
	seen := map[target]bool{}
	for i := range in.Statements {
		if readText.MatchString(in.Statements[i].Statement) {
			return nil, invalid("Unable to process request: reads and writes cannot be mixed in one batch")
		}
		one := in.Statements[i].action
		if in.Statements[i].err != nil {
			continue
		}
		at := target{one.TableName, s.keyIn(one)}
		if seen[at] {
			return nil, invalid("Provided list of item keys contains duplicates")
		}
		seen[at] = true
	}
	answers := make([]statementAnswer, len(in.Statements))
	for i := range in.Statements {
		answers[i] = s.execute(&in.Statements[i])
	}
	return map[string]any{"Responses": answers}, nil
}

// execute carries out one statement, with its fault.
func (s *Server) execute(one *statement) statementAnswer {
	answer := statementAnswer{TableName: one.action.TableName}
	err := one.err
	if err == nil {
		err = one.fault.refusal(&input{operation: one.permission(), TableName: one.action.TableName})
	}
	if err == nil {
		answer.Item, err = s.executeAction(one)
	}
	if one.fault == ApplyThen500 {
		err = internalError()
	}
	if e := (*apiError)(nil); errors.As(err, &e) {
		answer.Item, answer.Error = nil, &reason{Code: statementCode(e.Kind), Message: e.Message, Item: e.Item}
		if one.fault == OmitItem {
			answer.Error.Item = nil
		}
	}
	return answer
}

func (s *Server) executeAction(one *statement) (item, error) {
	a, err := s.prepare(one.kind, one.action)
	switch {
	case err != nil:
		return nil, err
	case one.kind == kindPut && a.err() == nil && a.old != nil:
		return nil, failure(dynamoType+"DuplicateItemException", "Duplicate primary key exists in table")
	case one.kind == kindUpdate && a.schema == nil && a.syntax == nil && a.old == nil: // it never creates an item
		return nil, failure(dynamoType+"ConditionalCheckFailedException", "The conditional request failed")
	case a.err() != nil:
		return nil, a.err()
	}
	a.apply()
	if one.action.ReturnValues == "ALL_OLD" {
		return a.old, nil
	}
	return nil, nil
}

// statementCode returns what the error of a statement is called. Most names
// lack the suffix that they have elsewhere.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html
func statementCode(kind string) string {
	_, name, _ := strings.Cut(kind, "#")
	name = strings.TrimSuffix(name, "Exception")
	if slices.Contains([]string{"Validation", "Throttling"}, name) {
		return name + "Error"
	}
	return name
}
