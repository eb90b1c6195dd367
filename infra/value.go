package infra

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// resolve calls Stack.Resolve, which does not accept nil.
func resolve(stack awscdk.Stack, value any) any {
	if value == nil {
		return nil
	}
	return stack.Resolve(value)
}

// encoded returns a resolved value as JSON.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "" // cannot happen: what was resolved came as JSON
	}
	return string(text)
}

// joined returns a resolved string, with * for each part that only the
// deployment knows.
func joined(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	expression, _ := value.(map[string]any)
	arguments, _ := expression["Fn::Join"].([]any)
	if len(arguments) != 2 {
		return "*"
	}
	separator, _ := arguments[0].(string)
	list, _ := arguments[1].([]any)
	var parts []string
	for _, e := range list {
		parts = append(parts, joined(e))
	}
	return strings.Join(parts, separator)
}

// numberOr returns value, or otherwise if it is nil.
func numberOr(value *float64, otherwise float64) rules.Number {
	if value == nil {
		return rules.Known(otherwise)
	}
	return rules.Number{Value: *value, Known: !*awscdk.Token_IsUnresolved(value)}
}

// parsedNumber returns a member of a resolved object. CloudFormation also
// accepts a number as a string.
func parsedNumber(value any) rules.Number {
	text, ok := value.(string)
	if !ok {
		text = encoded(value)
	}
	n, err := strconv.ParseFloat(text, 64)
	return rules.Number{Value: n, Known: err == nil}
}
