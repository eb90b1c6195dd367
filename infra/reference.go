package infra

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
)

// reference is a property that names a resource.
type reference struct {
	stack string   // the property's
	paths []string // of the resources, where the CDK knows them
	ids   []string // logical ids, which is all that is seen inside an expression
	text  string   // the property as a literal, or its expression as JSON
}

// reference reads a property of a resource in stack.
func (v *survey) reference(stack awscdk.Stack, value *string) reference {
	if value == nil {
		return reference{}
	}
	ref := reference{stack: v.stack(stack), text: *value}
	if !*awscdk.Token_IsUnresolved(value) {
		return ref
	}
	for _, token := range *awscdk.Tokenization_ReverseString(value).Tokens() {
		if r, ok := token.(awscdk.Reference); ok { // to any stack
			ref.paths = append(ref.paths, *r.Target().Node().Path())
		}
	}
	resolved := stack.Resolve(value)
	ref.ids, ref.text = logicalIDs(resolved), encoded(resolved)
	return ref
}

// targets are the paths of the resources that ref may mean.
func (v *survey) targets(ref reference) []string {
	paths := ref.paths
	for _, id := range ref.ids {
		if path, ok := v.byID[ref.stack+"/"+id]; ok {
			paths = append(paths, path)
		} else if others := v.anywhere[id]; len(others) == 1 { // in another stack
			paths = append(paths, others[0])
		}
	}
	return paths
}

// logicalIDs are those in a resolved value.
func logicalIDs(value any) []string {
	var ids []string
	switch value := value.(type) {
	case []any:
		for _, e := range value {
			ids = append(ids, logicalIDs(e)...)
		}
	case map[string]any:
		for k, e := range value {
			if id, ok := e.(string); ok && k == "Ref" {
				ids = append(ids, id)
				continue
			}
			if path, ok := e.([]any); ok && k == "Fn::GetAtt" && len(path) > 0 {
				id, _ := path[0].(string)
				ids = append(ids, id)
				continue
			}
			ids = append(ids, logicalIDs(e)...)
		}
	}
	return ids
}

// qualifier is an alias or a version of a function.
type qualifier struct {
	function reference
	name     string // of an alias
}

// latest is what a function's plain name means, as if it were a qualifier:
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-versions.html
const latest = "$LATEST"

// function is the path of the function that ref means, and of the version or alias
// that it is qualified by, else [latest]. Both are empty if it is not of the stage.
func (v *survey) function(ref reference) (path, by string) {
	targets := v.targets(ref)
	for _, target := range targets {
		if q, ok := v.qualifiers[target]; ok {
			path, _ := v.function(q.function)
			return path, target
		}
	}
	for _, target := range targets {
		if v.functions[target] != nil {
			return target, latest
		}
	}
	return "", ""
}

// resolve is Stack.Resolve, which does not take nil.
func resolve(stack awscdk.Stack, value any) any {
	if value == nil {
		return nil
	}
	return stack.Resolve(value)
}

// encoded is a resolved value as JSON.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "" // what was resolved is JSON
	}
	return string(text)
}

// joined is a resolved string. A part that only the deployment knows is a *.
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

// number is a property that may be a parameter of the deployment.
type number struct {
	value float64
	known bool
}

func numberOf(value *float64, otherwise float64) number {
	if value == nil {
		return number{otherwise, true}
	}
	return number{*value, !*awscdk.Token_IsUnresolved(value)}
}

// numberIn is a member of a resolved object, where CloudFormation takes a number
// as a string, too.
func numberIn(value any) number {
	text, ok := value.(string)
	if !ok {
		text = encoded(value)
	}
	n, err := strconv.ParseFloat(text, 64)
	return number{n, err == nil}
}
