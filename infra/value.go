package infra

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
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

// number is a numeric property. It is not known if it is, for example, a
// parameter of the deployment.
type number struct {
	value float64
	known bool
}

// numberOr returns value, or otherwise if it is nil.
func numberOr(value *float64, otherwise float64) number {
	if value == nil {
		return number{otherwise, true}
	}
	return number{*value, !*awscdk.Token_IsUnresolved(value)}
}

// isZero reports whether value is given and 0.
func isZero(value *float64) bool { return value != nil && *value == 0 }

// parsedNumber returns a member of a resolved object. CloudFormation also
// accepts a number as a string.
func parsedNumber(value any) number {
	text, ok := value.(string)
	if !ok {
		text = encoded(value)
	}
	n, err := strconv.ParseFloat(text, 64)
	return number{n, err == nil}
}
