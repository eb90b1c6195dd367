// Package bloblease leases a blob of Azure Blob Storage that is itself the
// resource, while your work runs. It needs no store: the service denies all
// other writes to the blob, and its deletion.
//
// # A lease, or a lock?
//
// With a lease, the service itself refuses everybody else's writes, which no
// lock can do: its row is beside the resource. A lease protects nothing but its
// blob: others may read the blob, effects elsewhere have no fence, and no event
// is remembered. For those, use a lock, for example with package azblobstore. A
// delayed copy of the request that leased the blob can lease it again with no
// holder; the blob is then blocked until that lease ends.
//
// The lease is never infinite, because that of a dead holder would have to be
// broken by hand.
// https://learn.microsoft.com/rest/api/storageservices/lease-blob
//
// # Errors
//
// The errors are those of package lock. Key.Name is the URL of the blob,
// without a signature, and Err is the service's response.
package bloblease
