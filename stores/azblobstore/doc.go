// Package azblobstore keeps locks in Azure Blob Storage, without a table: New
// returns a store with one small blob per lock name. If a blob is itself the
// resource, package bloblease leases it without a store.
//
// # The blob
//
// The blob of a name is called prefix + [objectstore.Key](name), for example
// "locks/main%2Forders". It is a block blob of JSON that people can read;
// package objectstore describes its fields. It is created by the first acquire
// and never deleted: the fence and the completed events outlive the lease.
//
// # Requests
//
//	step                    requests
//	acquire, fresh name     1 Put Blob (If-None-Match: *)
//	acquire, known name     1 Get Blob, 1 Put Blob (If-Match); only the latter if this process used it last
//	renew, release          1 Put Blob (If-Match), as long as nobody else wrote
//
// A write whose condition does not hold is refused with 409 BlobAlreadyExists
// or 412 ConditionNotMet; then somebody else wrote first. A write that succeeds
// changes the ETag, and every later read or write sees it. So at most one of
// many writers wins.
// https://learn.microsoft.com/rest/api/storageservices/put-blob
// https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
// https://learn.microsoft.com/azure/storage/blobs/concurrency-manage
//
// Leases of locks end by the service's clock: Date less Last-Modified of one
// answer, plus a second for their resolution. The clients' clocks do not
// matter.
//
// # Permissions
//
// The role Storage Blob Data Contributor, on the container. A role of your own
// needs the data actions blobs/read and blobs/write of
// Microsoft.Storage/storageAccounts/blobServices/containers, and no
// blobs/delete. A shared access signature needs read, create and write, and
// list for the commands that show locks.
// https://learn.microsoft.com/azure/role-based-access-control/built-in-roles/storage
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory
//
// # Settings of the account
//
//   - Delete old locks with a lifecycle rule for the prefix
//     (daysAfterModificationGreaterThan), after more days than events are
//     remembered. It must not move them to the archive tier, which cannot be
//     read.
//     https://learn.microsoft.com/azure/storage/blobs/lifecycle-management-policy-delete
//   - With versioning or soft delete, every write keeps what was there before,
//     and you pay for it. Turn both off for the account of the locks, or let
//     the rule delete previous versions after a day.
//     https://learn.microsoft.com/azure/storage/blobs/versioning-overview
//     https://learn.microsoft.com/azure/storage/blobs/soft-delete-blob-overview
//   - No immutability policy and no legal hold: they forbid to rewrite a blob.
//     https://learn.microsoft.com/azure/storage/blobs/immutable-storage-overview
//
// # What it promises
//
// A name has at most one owner, as long as the account is not failed over to
// its secondary Region: replication is asynchronous, so an unplanned failover
// may lose the last writes, and with them owners, completed events and fences.
// https://learn.microsoft.com/azure/storage/common/last-sync-time-get
//
// Requests are billed whether they succeed or not, so waiting for a name costs
// money. Use it for low rates, and for functions that have a storage account
// but no table; a hot name is better kept elsewhere. The service throttles an
// overloaded partition with 503 ServerBusy.
// https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories
// https://learn.microsoft.com/azure/storage/blobs/scalability-targets
package azblobstore
