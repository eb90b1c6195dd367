package infra

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// replica is a resource that replicates a table.
type replica struct {
	table    reference
	settings rules.Replica
}

// noteReplica notes the custom resource that Table makes for
// ReplicationRegions.
func (v *survey) noteReplica(r awscdk.CfnResource) {
	if properties := r.CfnProperties(); properties != nil {
		name, _ := (*properties)["TableName"].(string)
		v.replicas = append(v.replicas, replica{v.reference(r.Stack(), &name), rules.Replica{Name: *r.Node().Path()}})
	}
}

// noteGlobalTable notes a global table that has more than one Region.
func (v *survey) noteGlobalTable(r awsdynamodb.CfnGlobalTable) {
	if replicas, _ := resolve(r.Stack(), r.Replicas()).([]any); len(replicas) > 1 {
		table, path, consistency := v.reference(r.Stack(), r.TableName()), *r.Node().Path(), r.MultiRegionConsistency()
		table.paths = append(table.paths, path) // that of the table itself, whatever its name
		v.replicas = append(v.replicas, replica{table, rules.Replica{Name: path, Strong: consistency != nil && *consistency == "STRONG"}})
	}
}

// replicates reports whether r replicates t.
func (v *survey) replicates(r replica, t *lockTable) bool {
	isTable := func(path string) bool { return slices.Contains(t.resourcePaths, path) }
	return slices.ContainsFunc(v.targets(r.table), isTable) || t.name != nil && r.table.text == *t.name
}

// checkReplicas checks that the table is in one Region, or strongly consistent.
func (c *connection) checkReplicas() {
	for _, r := range c.table.survey.replicas {
		if !c.table.survey.replicates(r, c.table) {
			continue
		}
		found := r.settings.Check()
		if found.Fatal {
			c.fail("function %s locks in %s", c.path, found.Text)
			return
		}
		c.warn(idPrefix+found.ID, "it locks in %s", found.Text)
	}
}
