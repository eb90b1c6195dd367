package infra

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
)

// replica is a resource that replicates a table.
type replica struct {
	path   string
	table  reference
	strong bool // strongly consistent in all Regions
}

// noteReplica notes the custom resource that Table makes for
// ReplicationRegions.
func (v *survey) noteReplica(r awscdk.CfnResource) {
	if *r.CfnResourceType() != "Custom::DynamoDBReplica" {
		return
	}
	if properties := r.CfnProperties(); properties != nil {
		name, _ := (*properties)["TableName"].(string)
		v.replicas = append(v.replicas, replica{path: *r.Node().Path(), table: v.reference(r.Stack(), &name)})
	}
}

// noteGlobalTable notes a global table that has more than one Region.
func (v *survey) noteGlobalTable(r awsdynamodb.CfnGlobalTable) {
	if replicas, _ := resolve(r.Stack(), r.Replicas()).([]any); len(replicas) > 1 {
		consistency := r.MultiRegionConsistency()
		v.replicas = append(v.replicas, replica{
			path: *r.Node().Path(), table: v.reference(r.Stack(), r.TableName()), strong: consistency != nil && *consistency == "STRONG",
		})
	}
}

// replicates reports whether r replicates t.
func (v *survey) replicates(r replica, t *lockTable) bool {
	return slices.Contains(v.targets(r.table), t.resourcePath) || t.name != nil && r.table.text == *t.name
}

// checkReplicas checks that the table is in one Region, or strongly consistent.
// What the two kinds of global tables promise and lack is in
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
func (c *connection) checkReplicas() {
	for _, r := range c.table.survey.replicas {
		if !c.table.survey.replicates(r, c.table) {
			continue
		}
		if !r.strong {
			c.fail("function %s locks in a table that %s replicates asynchronously: "+
				"conditions are evaluated per Region, so two Regions can hold the same lock. "+
				"Remove the replica, or use a global table with MultiRegionConsistency STRONG", c.path, r.path)
			return
		}
		c.warn(WarnStrongGlobalTable, "it locks in the global table %s with MultiRegionConsistency STRONG: "+
			"such a table has no TTL, so unused rows stay until you delete them, it refuses transactions, "+
			"and every request waits for another Region. Use a table in one Region unless other Regions must see the same locks", r.path)
	}
}
