"""Documentation of configuration keys, one line each; a key that is not listed has none."""

from collections.abc import Mapping
from types import MappingProxyType

_TOPIC = {
    "cleanup.policy": "Cleanup of old data: delete by age or size, compact by key, both, none.",
    "compression.gzip.level": "Effort of gzip, 1 to 9, or -1 for the library's choice.",
    "compression.lz4.level": "Effort of lz4, 1 to 17.",
    "compression.type": "Codec of stored batches; producer keeps the one each batch came with.",
    "compression.zstd.level": "Effort of zstd, up to 22; negative levels trade size for speed.",
    "delete.retention.ms": "How long tombstones stay readable in a compacted topic.",
    "errors.deadletterqueue.group.enable": "Let share groups write dead letters to the topic.",
    "file.delete.delay.ms": "Wait between taking a file out of use and removing it.",
    "flush.messages": "Force the log to disk after this many messages.",
    "flush.ms": "Force the log to disk when a message has waited this long.",
    "follower.replication.throttled.replicas": (
        "Replicas whose fetching is throttled: partition:broker pairs, or * for all."
    ),
    "index.interval.bytes": "Bytes of log between two entries of the offset index.",
    "internal.segment.bytes": "Size of a segment file, for tests only.",
    "leader.replication.throttled.replicas": (
        "Replicas whose serving is throttled: partition:broker pairs, or * for all."
    ),
    "local.retention.bytes": "Local size kept of a tiered partition; -2 follows retention.bytes.",
    "local.retention.ms": "Local time kept of a tiered partition; -2 follows retention.ms.",
    "max.compaction.lag.ms": "Longest time a message may stay out of compaction.",
    "max.decompressed.message.bytes": "Largest record of a compressed batch, once unpacked.",
    "max.message.bytes": "Largest record batch the topic accepts, after compression.",
    "message.timestamp.after.max.ms": "How far a message's time may lie ahead of the broker's.",
    "message.timestamp.before.max.ms": "How far a message's time may lie behind the broker's.",
    "message.timestamp.type": "Whose time a message carries: the producer's or the log's.",
    "min.cleanable.dirty.ratio": "Share of uncompacted log from which the cleaner takes it up.",
    "min.compaction.lag.ms": "Shortest time a message stays out of compaction.",
    "min.insync.replicas": "Replicas that must hold a write before acks=all is answered.",
    "preallocate": "Reserve the disk space of a new segment at once.",
    "remote.copy.lag.bytes": "Size of data not yet in remote storage; -1 follows the local size.",
    "remote.copy.lag.ms": "Age of data not yet in remote storage; -1 follows the local time.",
    "remote.log.copy.disable": "Stop copying to remote storage; what is there stays readable.",
    "remote.log.delete.on.disable": "Delete the remote data when tiered storage is switched off.",
    "remote.storage.enable": "Keep older segments of the topic in remote storage.",
    "retention.bytes": "Size of a partition above which old segments are deleted; -1: no limit.",
    "retention.ms": "Age above which old segments are deleted; -1 is no limit.",
    "segment.bytes": "Size of a segment file.",
    "segment.index.bytes": "Size of a segment's offset index.",
    "segment.jitter.ms": "Random part taken off segment.ms, so that segments do not roll together.",
    "segment.ms": "Age at which a segment is closed even if it is not full.",
    "unclean.leader.election.enable": "Allow a replica out of sync to lead when no other is left.",
}
_BROKER = {
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "How long a partition is tried to be added to a transaction."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "Pause before a partition is added to a transaction again."
    ),
    "advertised.listeners": "Addresses at which other nodes and clients reach this node.",
    "alter.config.policy.class.name": (
        "Python class, package.module.Class, that may refuse changes of configurations."
    ),
    "authorizer.class.name": "Authorizer of requests: Kafka's StandardAuthorizer, or none.",
    "auto.create.topics.enable": "Create a topic when a client asks for one that is not there.",
    "auto.leader.rebalance.enable": "Give leadership back to preferred replicas from time to time.",
    "broker.heartbeat.interval.ms": "Time between two heartbeats of a broker.",
    "broker.id": "The older name of node.id.",
    "broker.rack": "Rack of this broker, for spreading replicas.",
    "broker.session.timeout.ms": "Silence after which the controller fences a broker.",
    "connection.failed.authentication.delay.ms": (
        "Time until a client that SASL does not let in gets its answer, and is closed."
    ),
    "connections.max.reauth.ms": (
        "Time within which a client of SASL has to authenticate again; 0 or less: any."
    ),
    "connections.max.idle.ms": "Silence after which a connection is closed; -1 is never.",
    "controlled.shutdown.enable": "Hand over leadership before stopping.",
    "controller.listener.names": "Listeners that belong to the controller.",
    "controller.quorum.append.linger.ms": (
        "How long the leader gathers records before it writes them."
    ),
    "controller.quorum.auto.join.enable": (
        "Let a controller make itself a voter of a dynamic quorum."
    ),
    "controller.quorum.bootstrap.servers": (
        "Controllers to ask first for the quorum; also one balancer in front of all."
    ),
    "controller.quorum.election.backoff.max.ms": "Longest wait after a lost election.",
    "controller.quorum.election.timeout.ms": "How long a candidate waits for votes.",
    "controller.quorum.fetch.max.bytes": "Most bytes of the metadata log asked for at once.",
    "controller.quorum.fetch.snapshot.max.bytes": "Most bytes of a snapshot asked for at once.",
    "controller.quorum.fetch.timeout.ms": "Silence of the leader after which an election begins.",
    "controller.quorum.request.timeout.ms": "How long a request to another controller may take.",
    "controller.quorum.retry.backoff.ms": "Wait before a failed request is repeated.",
    "controller.quorum.voters": "Voters of a static quorum, id@host:port each.",
    "controller.quota.window.num": "Windows for which a client may save up topic changes.",
    "controller.quota.window.size.seconds": "Length of one of those windows.",
    "create.topic.policy.class.name": (
        "Python class, package.module.Class, that may refuse new topics."
    ),
    "alter.log.dirs.replication.quota.window.num": (
        "Windows over which the rate of moves between data directories is measured."
    ),
    "alter.log.dirs.replication.quota.window.size.seconds": (
        "Length of a window of the rate of moves between data directories."
    ),
    "replica.selector.class": (
        "Selector of the replica that a consumer reads from: Kafka's RackAwareReplicaSelector, or "
        "the leader."
    ),
    "replication.quota.window.num": "Windows over which rates of replication are measured.",
    "replication.quota.window.size.seconds": "Length of a window of the rates of replication.",
    "cordoned.log.dirs": "Data directories that get no new replicas; * is all.",
    "default.replication.factor": "Replicas of a topic that is created without a number.",
    "delegation.token.expiry.check.interval.ms": "Time between two checks for expired tokens.",
    "delegation.token.expiry.time.ms": "How long a delegation token lasts unless it is renewed.",
    "delegation.token.max.lifetime.ms": "How long a delegation token may last in all.",
    "delegation.token.secret.key": "Secret of delegation tokens; without one they are disabled.",
    "delete.topic.enable": "Allow topics to be deleted.",
    "errors.deadletterqueue.auto.create.topics.enable": (
        "Create a share group's dead-letter queue that is not there."
    ),
    "errors.deadletterqueue.topic.name.prefix": "Beginning of the names of dead-letter queues.",
    "fetch.max.bytes": "Most bytes of records in the answer to one fetch.",
    "group.consumer.assignment.interval.ms": (
        "Shortest time between two target assignments of a consumer group."
    ),
    "group.consumer.assignors": (
        "Assignors of consumer groups, uniform and range; the first is the default."
    ),
    "group.consumer.heartbeat.interval.ms": (
        "Time between two heartbeats of a member of a consumer group."
    ),
    "group.consumer.max.assignment.interval.ms": "Longest assignment interval of a group's own.",
    "group.consumer.max.heartbeat.interval.ms": "Longest heartbeat interval of a group's own.",
    "group.consumer.max.session.timeout.ms": "Longest session of a group's own.",
    "group.consumer.max.size": "Most members of a consumer group.",
    "group.consumer.migration.policy": (
        "Whether groups with members may change between the classic and the consumer protocol: "
        "bidirectional, upgrade, downgrade or disabled."
    ),
    "group.consumer.min.assignment.interval.ms": "Shortest assignment interval of a group's own.",
    "group.consumer.min.heartbeat.interval.ms": "Shortest heartbeat interval of a group's own.",
    "group.consumer.min.session.timeout.ms": "Shortest session of a group's own.",
    "group.consumer.regex.refresh.interval.ms": (
        "Time between two resolutions of a group's subscribed regular expressions."
    ),
    "group.consumer.session.timeout.ms": (
        "Time without a heartbeat after which a member of a consumer group is removed."
    ),
    "group.coordinator.append.linger.ms": (
        "How long a coordinator gathers changes of groups for one batch; -1: while it is busy."
    ),
    "group.coordinator.rebalance.protocols": (
        "Protocols of groups that the broker serves; classic is one of them, consumer may be."
    ),
    "group.initial.rebalance.delay.ms": (
        "Wait for more members before the first rebalance of an empty group."
    ),
    "group.max.session.timeout.ms": "Longest session that a member of a classic group may ask for.",
    "group.max.size": "Most members of a classic group.",
    "group.min.session.timeout.ms": (
        "Shortest session that a member of a classic group may ask for."
    ),
    "group.share.assignment.interval.ms": (
        "Time between two assignments of a share group, unless the group says otherwise."
    ),
    "group.share.assignors": "Assignor of share groups, simple.",
    "group.share.delivery.count.limit": (
        "Most deliveries of a record of a share partition, unless the group says otherwise."
    ),
    "group.share.heartbeat.interval.ms": (
        "Time between two heartbeats of a member, unless the group says otherwise."
    ),
    "group.share.initialize.retry.interval.ms": (
        "Wait before the state of a share partition is initialized again, at least the time of a "
        "commit."
    ),
    "group.share.max.assignment.interval.ms": "Longest assignment interval of a share group's own.",
    "group.share.max.delivery.count.limit": "Highest limit of deliveries of a share group's own.",
    "group.share.max.heartbeat.interval.ms": "Longest heartbeat interval of a share group's own.",
    "group.share.max.partition.max.record.locks": (
        "Highest limit of records in flight of a share group's own."
    ),
    "group.share.max.record.lock.duration.ms": "Longest record lock of a share group's own.",
    "group.share.max.session.timeout.ms": "Longest session of a share group's own.",
    "group.share.max.share.sessions": "Most share sessions that the broker has at once.",
    "group.share.max.size": "Most members of a share group.",
    "group.share.min.assignment.interval.ms": (
        "Shortest assignment interval of a share group's own."
    ),
    "group.share.min.delivery.count.limit": "Lowest limit of deliveries of a share group's own.",
    "group.share.min.heartbeat.interval.ms": "Shortest heartbeat interval of a share group's own.",
    "group.share.min.partition.max.record.locks": (
        "Lowest limit of records in flight of a share group's own."
    ),
    "group.share.min.record.lock.duration.ms": "Shortest record lock of a share group's own.",
    "group.share.min.session.timeout.ms": "Shortest session of a share group's own.",
    "group.share.partition.max.record.locks": (
        "Most records of a share partition in flight, unless the group says otherwise."
    ),
    "group.share.record.lock.duration.ms": (
        "How long a record in flight is locked for its member, unless the group says otherwise."
    ),
    "group.share.session.timeout.ms": (
        "Session of a member of a share group, unless the group says otherwise."
    ),
    "log.flush.offset.checkpoint.interval.ms": "Time between two writes of recovery points.",
    "log.cleaner.backoff.ms": "How long the cleaner rests when no log is to be compacted.",
    "log.cleaner.dedupe.buffer.size": (
        "Memory for the keys of one pass: 24 bytes each; a log with more takes several passes."
    ),
    "log.cleaner.enable": "Compact the logs of topics whose cleanup.policy asks for it.",
    "log.cleaner.io.buffer.load.factor": "How much of that memory is used before a pass begins.",
    "log.retention.check.interval.ms": "Time between two looks for old segments to delete.",
    "log.segment.delete.delay.ms": "How long the files of a deleted partition are kept.",
    "offset.metadata.max.bytes": (
        "Longest text that may be committed with an offset, in UTF-16 units."
    ),
    "offsets.commit.timeout.ms": "How long a change of a group may wait until it is replicated.",
    "offsets.retention.check.interval.ms": (
        "Time between two searches for offsets that have expired."
    ),
    "offsets.retention.minutes": "How long the offsets of a group without members are kept.",
    "offsets.topic.compression.codec": (
        "Codec of batches in __consumer_offsets, by its number; 0 is none."
    ),
    "offsets.topic.num.partitions": "Partitions of __consumer_offsets when it is created.",
    "offsets.topic.replication.factor": "Replicas of __consumer_offsets when it is created.",
    "offsets.topic.segment.bytes": "Size of a segment file of __consumer_offsets.",
    "producer.id.expiration.check.interval.ms": (
        "Time between two looks for producers that have been idle for too long."
    ),
    "producer.id.expiration.ms": "How long an idle producer with an id is remembered.",
    "num.recovery.threads.per.data.dir": "Threads that close the logs of a data directory.",
    "num.replica.fetchers": "Connections by which a broker fetches from one leader.",
    "replica.fetch.backoff.ms": "How long a follower waits after an error before it fetches again.",
    "replica.fetch.max.bytes": "Most bytes of one partition that a follower asks for at once.",
    "replica.fetch.min.bytes": "Bytes that a follower waits for.",
    "replica.fetch.response.max.bytes": "Most bytes of records that a follower asks for at once.",
    "replica.fetch.wait.max.ms": "How long a follower waits for them.",
    "replica.high.watermark.checkpoint.interval.ms": "Time between two writes of high watermarks.",
    "replica.lag.time.max.ms": "How long a follower may lag before it is no longer in sync.",
    "replica.socket.timeout.ms": "How long a follower waits for the answer to a request.",
    "log.dir.failure.timeout.ms": "How long a broker tries to tell the controller of a log "
    "directory that has failed, before it ends.",
    "initial.broker.registration.timeout.ms": "How long a starting broker tries to register.",
    "inter.broker.listener.name": "Listener by which brokers reach each other.",
    "internal.metadata.delete.delay.millis": "Wait before a file out of use is removed, for tests.",
    "internal.metadata.log.segment.bytes": "Size of a metadata segment, for tests.",
    "leader.imbalance.check.interval.seconds": "Time between two checks of preferred leaders.",
    "listener.security.protocol.map": "Security protocol of each listener, by name.",
    "listeners": "Addresses this node listens at, by listener name.",
    "log.dir": "Data directory, where log.dirs is not set.",
    "log.dirs": "Data directories.",
    "max.connection.creation.rate": "Connections accepted in a second, also by listener.",
    "max.connections": "Connections accepted at a time, also by listener.",
    "max.connections.per.ip": "Connections accepted from one address at a time.",
    "max.connections.per.ip.overrides": "Other limits of hosts or addresses, as host:count.",
    "max.request.partition.size.limit": "Most partitions in one page of a response.",
    "max.incremental.fetch.session.cache.slots": (
        "How many fetch sessions the broker keeps; other clients list all partitions each time."
    ),
    "metadata.log.dir": "Directory of the metadata log; the first data directory if not set.",
    "metadata.log.max.record.bytes.between.snapshots": (
        "New records after which a snapshot is taken."
    ),
    "metadata.log.max.snapshot.interval.ms": "Time after which a snapshot is taken; 0 is never.",
    "metadata.log.segment.bytes": "Size of a metadata segment.",
    "metadata.log.segment.ms": "Age at which a metadata segment is closed.",
    "metadata.max.idle.interval.ms": "Time between two no-op records of the active controller.",
    "metadata.max.retention.bytes": "Size of the metadata log above which old files are deleted.",
    "metadata.max.retention.ms": "Age above which old files of the metadata log are deleted.",
    "min.insync.replicas": "Replicas that must hold a write before acks=all is answered.",
    "node.id": "Id of this node in the cluster.",
    "num.partitions": "Partitions of a topic that is created without a number.",
    "process.roles": "Roles of this process: broker, controller or both.",
    "quota.window.num": "Windows that rates under client quotas, and of new connections, count in.",
    "quota.window.size.seconds": "Length of one of those windows.",
    "request.timeout.ms": "How long a request to another node may take.",
    "sasl.enabled.mechanisms": "Mechanisms of SASL by which clients may authenticate.",
    "sasl.login.callback.handler.class": "Class of Kafka's that has tokens to log in with.",
    "sasl.login.connect.timeout.ms": "Longest wait for a connection to what gives tokens.",
    "sasl.login.read.timeout.ms": "Longest wait for a piece of an answer with a token.",
    "sasl.login.refresh.buffer.seconds": "Time before the end of a token, to have another one by.",
    "sasl.login.refresh.min.period.seconds": "Time for which no other token is had.",
    "sasl.login.refresh.window.factor": "Share of a token's life after which another one is had.",
    "sasl.login.refresh.window.jitter": "Share of its life that is added by chance, at most.",
    "sasl.login.retry.backoff.max.ms": "How long a token is asked for again and again.",
    "sasl.login.retry.backoff.ms": "First pause before a token is asked for again.",
    "sasl.mechanism.controller.protocol": "Mechanism by which nodes log in at controllers.",
    "sasl.mechanism.inter.broker.protocol": "Mechanism by which brokers log in at brokers.",
    "sasl.oauthbearer.allow.unverified.audience": "Take tokens that are for any audience.",
    "sasl.oauthbearer.allow.unverified.issuer": "Take tokens that are by any issuer.",
    "sasl.oauthbearer.client.credentials.client.id": "Name that this node shows to have a token.",
    "sasl.oauthbearer.client.credentials.client.secret": "Secret that goes with that name.",
    "sasl.oauthbearer.clock.skew.seconds": "Time by which an issuer's clock may differ.",
    "sasl.oauthbearer.expected.audience": "Audiences of which a token has to be for one.",
    "sasl.oauthbearer.expected.issuer": "Issuer that a token has to be by.",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "Time after which those keys are had again.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": (
        "How long the keys are asked for again and again."
    ),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "First pause before they are asked again.",
    "sasl.oauthbearer.jwks.endpoint.url": "URL of the keys of the issuer of tokens; or of a file.",
    "sasl.oauthbearer.jwt.retriever.class": "Class of Kafka's that has a token at the URL.",
    "sasl.oauthbearer.scope": "Scope that a token is asked for with.",
    "sasl.oauthbearer.scope.claim.name": "Claim of a token with its scope.",
    "sasl.oauthbearer.sub.claim.name": "Claim of a token with the name of its user.",
    "sasl.oauthbearer.token.endpoint.url": "URL that gives tokens to log in with; or of a file.",
    "sasl.server.max.receive.size": "Longest request before a client is authenticated, in bytes.",
    "security.inter.broker.protocol": "Protocol between brokers, where no listener is named.",
    "share.coordinator.append.linger.ms": (
        "Time for which writes of shares' states gather; -1: a turn of the loop."
    ),
    "share.coordinator.cold.partition.snapshot.interval.ms": (
        "Age at which a share partition's state is written again without a change."
    ),
    "share.coordinator.snapshot.update.records.per.snapshot": (
        "Changes of a share partition's state between two snapshots."
    ),
    "share.coordinator.state.topic.compression.codec": (
        "Compression of shares' states: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "share.coordinator.state.topic.min.isr": "Replicas in sync that a share's state needs.",
    "share.coordinator.state.topic.num.partitions": "Partitions of the topic of shares' states.",
    "share.coordinator.state.topic.prune.interval.ms": (
        "Time between two deletions of records of states that others have replaced."
    ),
    "share.coordinator.state.topic.replication.factor": "Replicas of the topic of shares' states.",
    "share.coordinator.state.topic.segment.bytes": "Size of a segment of the topic of states.",
    "share.coordinator.write.timeout.ms": "Longest wait for a share's state to be committed.",
    "socket.listen.backlog.size": "Connections that may wait to be accepted.",
    "socket.request.max.bytes": "Largest request that is read from a connection.",
    "ssl.allow.dn.changes": "Whether a renewed certificate may have another subject.",
    "ssl.allow.san.changes": "Whether a renewed certificate may have fewer hosts.",
    "ssl.cipher.suites": "Suites that are spoken; empty for all that OpenSSL has on.",
    "ssl.client.auth": "Ask clients for a certificate: required, requested or none.",
    "ssl.enabled.protocols": "Versions of TLS that are spoken: TLSv1.2, TLSv1.3.",
    "ssl.endpoint.identification.algorithm": "Check of a node's host name; empty for none.",
    "ssl.key.password": "Password of the private key, where it has one of its own.",
    "ssl.keystore.certificate.chain": "Certificates of the private key as text, with type PEM.",
    "ssl.keystore.key": "Private key as text (PKCS#8), with type PEM.",
    "ssl.keystore.location": "File of the private key and its certificates.",
    "ssl.keystore.password": "Password of that file, with type PKCS12 or JKS.",
    "ssl.keystore.type": "Form of the key store: PEM, PKCS12, or JKS, which reads PKCS12 here.",
    "ssl.principal.mapping.rules": "Rules from the subject of a certificate to a user.",
    "ssl.protocol": "Name of a version of TLS, which is only checked.",
    "ssl.truststore.certificates": "Certificates that are trusted as text, with type PEM.",
    "ssl.truststore.location": "File of the certificates that are trusted; none: the system's.",
    "ssl.truststore.password": "Password of that file, with type PKCS12 or JKS.",
    "ssl.truststore.type": "Form of the trust store: PEM, PKCS12, or JKS, which reads PKCS12 here.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "Time between two looks for transactions that are open for too long."
    ),
    "transaction.max.timeout.ms": "The longest time-out that a transactional producer may ask for.",
    "transaction.partition.verification.enable": (
        "Ask a transaction's coordinator before its first batch is appended."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "Time between two looks for transactional ids that have expired."
    ),
    "transaction.state.log.min.isr": "Replicas in sync that a step of a transaction needs.",
    "transaction.state.log.num.partitions": "Partitions of the topic of transactions.",
    "transaction.state.log.replication.factor": "Replicas of the topic of transactions.",
    "transaction.state.log.segment.bytes": "Size of a segment of the topic of transactions.",
    "transaction.two.phase.commit.enable": "Allow transactions that no time-out ends.",
    "transactional.id.expiration.ms": "Time after which a transactional id without use is removed.",
    "unclean.leader.election.enable": "Allow a replica out of sync to lead when no other is left.",
    "unclean.leader.election.interval.ms": "Time between two checks for partitions without leader.",
    "unstable.api.versions.enable": "Offer request versions that may still change.",
    "unstable.feature.versions.enable": "Allow feature levels that may still change.",
}
_GROUP = {
    "consumer.assignment.interval.ms": "Shortest time between two target assignments of the group.",
    "consumer.heartbeat.interval.ms": "Time between two heartbeats of a member.",
    "consumer.session.timeout.ms": "Time without a heartbeat after which a member is removed.",
    "share.auto.offset.reset": "Where a share group starts: earliest, latest, or a time ago.",
    "share.isolation.level": "Whether a share group sees records of open transactions.",
}
_CLIENT_METRICS = {
    "interval.ms": "Time between two pushes of a client's metrics.",
    "match": "Clients that push metrics, as name=expression pairs.",
    "metrics": "Prefixes of the requested metric names; * is all.",
}

DOCUMENTATION: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "topic": MappingProxyType(_TOPIC),
        "broker": MappingProxyType(_BROKER),
        "group": MappingProxyType(_GROUP),
        "client_metrics": MappingProxyType(_CLIENT_METRICS),
    }
)
