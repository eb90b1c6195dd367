package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// unreachable returns why fn cannot reach the table, or "". A function looks
// for the table by its name, in its own account and Region.
func (t *lockTable) unreachable(fn awslambda.IFunction) string {
	if *awscdk.Stage_Of(fn).Node().Path() != t.survey.stage {
		return fmt.Sprintf("is in a different stage from its lock table %s, and stages are deployed separately: "+
			"create a lock table in the function's stage, and connect the function to it", t.path)
	}
	function, table := fn.Env(), t.place // of what is imported, that of its ARN
	for _, p := range []struct {
		name            string
		function, table *string
	}{
		{"Region", function.Region, table.Region},
		{"account", function.Account, table.Account},
	} {
		if *p.function != *p.table && !*awscdk.Token_IsUnresolved(p.function) && !*awscdk.Token_IsUnresolved(p.table) {
			return fmt.Sprintf("runs in %s %s, but its lock table %s is in %s, and a function looks for the table in its own Region and account: "+
				"create a lock table there and connect the function to it, or move the function to the table's Region and account; "+
				"functions that share locks must share a table", p.name, *p.function, t.path, *p.table)
		}
	}
	return ""
}
