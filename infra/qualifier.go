package infra

import "github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

// qualifier is an alias or a version of a function.
type qualifier struct {
	function reference
	alias    string // name of the alias; empty for a version
}

// latest qualifies a function whose name is given without an alias or version:
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-versions.html
const latest = "$LATEST"

func (v *survey) noteAlias(r awslambda.CfnAlias) {
	v.qualifiers[v.note(r)] = qualifier{function: v.reference(r.Stack(), r.FunctionName()), alias: *r.Name()}
}

func (v *survey) noteVersion(r awslambda.CfnVersion) {
	v.qualifiers[v.note(r)] = qualifier{function: v.reference(r.Stack(), r.FunctionName())}
}

// aliasOf returns the path of the alias with the given name of the function at
// path.
func (v *survey) aliasOf(function, name string) (path string, ok bool) {
	for path, q := range v.qualifiers {
		if q.alias == "" || q.alias != name {
			continue
		}
		if of, _ := v.functionOf(q.function); of == function {
			return path, true
		}
	}
	return "", false
}
