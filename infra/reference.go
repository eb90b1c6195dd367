package infra

import "github.com/aws/aws-cdk-go/awscdk/v2"

// reference is a property that names a resource.
type reference struct {
	stack      string   // path of the property's stack
	paths      []string // of the resources, if the CDK knows them
	logicalIDs []string // of the resources in an expression
	text       string   // the literal, or the expression as JSON
}

// reference reads a property of a resource in stack.
func (v *survey) reference(stack awscdk.Stack, value *string) reference {
	if value == nil {
		return reference{}
	}
	ref := reference{stack: v.stackPath(stack), text: *value}
	if !*awscdk.Token_IsUnresolved(value) {
		return ref
	}
	ref.paths = referredPaths(value)
	resolved := stack.Resolve(value)
	ref.logicalIDs, ref.text = logicalIDs(resolved), encoded(resolved)
	return ref
}

// referredPaths returns the paths of the resources that value refers to, which
// may be in other stacks.
func referredPaths(value *string) []string {
	var paths []string
	for _, token := range *awscdk.Tokenization_ReverseString(value).Tokens() {
		if r, ok := token.(awscdk.Reference); ok {
			paths = append(paths, *r.Target().Node().Path())
		}
	}
	return paths
}

// targets returns the paths of the resources that ref may mean.
func (v *survey) targets(ref reference) []string {
	paths := ref.paths
	for _, id := range ref.logicalIDs {
		if path, ok := v.pathByID[ref.stack+"/"+id]; ok {
			paths = append(paths, path)
		} else if others := v.pathsByID[id]; len(others) == 1 { // in a different stack
			paths = append(paths, others[0])
		}
	}
	return paths
}

// logicalIDs returns the logical ids that a resolved value refers to.
func logicalIDs(value any) []string {
	var ids []string
	switch value := value.(type) {
	case []any:
		for _, e := range value {
			ids = append(ids, logicalIDs(e)...)
		}
	case map[string]any:
		for key, e := range value {
			if id, ok := referredID(key, e); ok {
				ids = append(ids, id)
			} else {
				ids = append(ids, logicalIDs(e)...)
			}
		}
	}
	return ids
}

// referredID returns the logical id in the argument of Ref or Fn::GetAtt.
func referredID(function string, argument any) (id string, ok bool) {
	switch function {
	case "Ref":
		id, ok = argument.(string)
	case "Fn::GetAtt":
		if path, _ := argument.([]any); len(path) > 0 {
			id, ok = path[0].(string)
		}
	}
	return id, ok
}
