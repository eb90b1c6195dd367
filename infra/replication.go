package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
)

// replica is a resource that replicates a table.
type replica struct {
	path   string
	table  reference
	strong bool // strongly consistent in all Regions
}

// noteReplica notes what Table makes of ReplicationRegions.
func (v *survey) noteReplica(r awscdk.CfnResource) {
	if *r.CfnResourceType() != "Custom::DynamoDBReplica" {
		return
	}
	if properties := r.CfnProperties(); properties != nil {
		name, _ := (*properties)["TableName"].(string)
		v.replicas = append(v.replicas, replica{path: *r.Node().Path(), table: v.reference(r.Stack(), &name)})
	}
}

func (v *survey) noteGlobal(r awsdynamodb.CfnGlobalTable) {
	if replicas, _ := resolve(r.Stack(), r.Replicas()).([]any); len(replicas) > 1 {
		consistency := r.MultiRegionConsistency()
		v.replicas = append(v.replicas, replica{
			path: *r.Node().Path(), table: v.reference(r.Stack(), r.TableName()), strong: consistency != nil && *consistency == "STRONG",
		})
	}
}

// replicates reports whether r is about the table of t.
func (v *survey) replicates(r replica, t *lockTable) bool {
	for _, path := range v.targets(r.table) {
		if path == t.resource {
			return true
		}
	}
	return t.name != nil && r.table.text == *t.name
}

// checkReplication: what the two kinds of global tables promise and lack is in
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
func (c *connection) checkReplication() {
	for _, r := range c.table.survey.replicas {
		switch {
		case !c.table.survey.replicates(r, c.table):
		case r.strong:
			c.warn(WarnStrongGlobalTable, "it locks in the global table %s with MultiRegionConsistency STRONG: "+
				"such a table has no TTL, so that rows nobody needs stay until you delete them, it refuses transactions, "+
				"and every request waits for another Region. Use a table of one Region unless other Regions must see the same locks", r.path)
		default:
			c.fail("function %s locks in a table that %s replicates asynchronously: "+
				"conditions are evaluated per Region, so that two Regions can hold one lock. "+
				"Remove the replica, or use a global table with MultiRegionConsistency STRONG", c.path, r.path)
			return
		}
	}
}
