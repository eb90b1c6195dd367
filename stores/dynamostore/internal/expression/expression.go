// Package expression has those expressions of a store by which package batching
// knows its claims and releases. It translates these, and nothing else that
// travels with the same client.
package expression

const (
	// Claim begins the update of a claim. The rest depends on its key.
	Claim = "SET ownerToken = :token, heldUntil = :until, stamp = :stamp, " +
		"fence = :fence, holder = :holder, deleteAfter = :deleteAfter"
	// Release begins the update of a release. The rest is what it remembers.
	Release = "SET deleteAfter = :deleteAfter"
	// Readable is the condition that this version can read the row.
	Readable = "attribute_not_exists(rowFormat)"
	// Owner is the condition of a release.
	Owner = Readable + " AND ownerToken = :token"
)
