// Package bloblease leases a blob of Azure Blob Storage that is itself the
// resource, while your work runs. It needs no store: the service refuses
// everybody else's writes to the blob, and its deletion.
//
// # A lease, or a lock?
//
// No lock can make the service refuse a write. But a lease protects nothing
// except its blob: others may read the blob meanwhile, a work's effects
// elsewhere have no fence, and no event is remembered. For those use a lock,
// for example with package azblobstore. A delayed copy of the request that
// leased the blob can lease it again with no holder; the blob is then blocked
// until that lease ends.
//
// The lease is never infinite: that of a dead holder would have to be broken by
// a person.
// https://learn.microsoft.com/rest/api/storageservices/lease-blob
//
// # Errors
//
// They are those of package lock. Key.Name is the URL of the blob, without a
// signature, and Err is what the service said.
package bloblease
