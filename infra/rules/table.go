package rules

import "fmt"

// Replica replicates a lock table.
type Replica struct {
	Name   string
	Strong bool // strongly consistent in all Regions
}

// Check judges what replicates a table. The text goes on from "locks in". What
// the two kinds of global tables promise and lack is in
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
func (r *Replica) Check() Finding {
	if !r.Strong {
		return Finding{ID: Replication, Fatal: true, Text: fmt.Sprintf("a table that %s replicates asynchronously: "+
			"conditions are evaluated per Region, so two Regions can hold the same lock. "+
			"Remove the replica, or use a global table with MultiRegionConsistency STRONG", r.Name)}
	}
	return Finding{ID: StrongGlobalTable, Text: fmt.Sprintf("the global table %s with MultiRegionConsistency STRONG: "+
		"such a table has no TTL, so unused rows stay until you delete them, it refuses transactions, "+
		"and every request waits for another Region. Use a table in one Region unless other Regions must see the same locks", r.Name)}
}
