// Package azblobstore keeps locks in Azure Blob Storage, without a table. [New]
// returns a store with one small blob per lock name. If a blob is itself the
// resource, package bloblease leases it without a store.
//
// # The blob
//
// The blob of a lock name is named prefix + [objectstore.Key](name), for
// example "locks/main%2Forders". It is a block blob with readable JSON; package
// objectstore describes the fields. The first acquisition creates it. The store
// never deletes it, because the fence and the completed events must outlive the
// lease.
//
// # Requests
//
//	step                    requests
//	acquire, fresh name     1 Put Blob (If-None-Match: *)
//	acquire, known name     1 Get Blob, 1 Put Blob (If-Match); only the latter if this process used it last
//	renew, release          1 Put Blob (If-Match), as long as there was no other write
//
// Azure refuses a write whose condition does not hold, with 409
// BlobAlreadyExists or 412 ConditionNotMet: another write came first. A
// successful write changes the ETag, which every later read and write sees. So
// at most one of several concurrent writers succeeds.
// https://learn.microsoft.com/rest/api/storageservices/put-blob
// https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
// https://learn.microsoft.com/azure/storage/blobs/concurrency-manage
//
// The service's clock decides when the lease of a lock ends, by the Date and
// Last-Modified headers of one response, with a second added for their
// resolution. The clients' clocks do not matter.
//
// # Permissions
//
// Assign the role Storage Blob Data Contributor on the container. A custom role
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
//   - With versioning or soft delete, every write keeps the previous version,
//     at a cost. Turn both off for the account, or let the lifecycle rule
//     delete previous versions after a day.
//     https://learn.microsoft.com/azure/storage/blobs/versioning-overview
//     https://learn.microsoft.com/azure/storage/blobs/soft-delete-blob-overview
//   - Set no immutability policy and no legal hold, which forbid overwriting a
//     blob.
//     https://learn.microsoft.com/azure/storage/blobs/immutable-storage-overview
//
// # What it promises
//
// A name has at most one owner unless the account fails over to its secondary
// Region. Replication is asynchronous, so an unplanned failover may lose the
// last writes, and with them owners, completed events and fences.
// https://learn.microsoft.com/azure/storage/common/last-sync-time-get
//
// Azure bills requests whether they succeed or not, so waiting for a name costs
// money. Use this store at low rates, where there is a storage account but no
// table, and keep contended names elsewhere. The service throttles an
// overloaded partition with 503 ServerBusy.
// https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories
// https://learn.microsoft.com/azure/storage/blobs/scalability-targets
package azblobstore
