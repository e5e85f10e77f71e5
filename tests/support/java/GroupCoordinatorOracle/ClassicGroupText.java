package org.apache.kafka.coordinator.group;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Optional;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;

/** The whole state of a classic group as a text. */
final class ClassicGroupText {
    private ClassicGroupText() { }

    @SuppressWarnings("unchecked")
    static void append(ClassicGroup group, StringBuilder text) {
        Collection<String> expected;
        try {
            Field field = ClassicGroup.class.getDeclaredField("pendingJoinMembers");
            field.setAccessible(true);
            expected = new TreeSet<>((Collection<String>) field.get(group));
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
        text.append(" group ").append(group.groupId()).append(' ').append(group.currentState()).append(' ')
            .append(group.previousState()).append(' ').append(group.generationId()).append(' ')
            .append(group.protocolType().orElse("~")).append(' ').append(group.protocolName().orElse("~"))
            .append(' ').append(Optional.ofNullable(group.leaderOrNull()).orElse("~")).append(' ')
            .append(group.currentStateTimestampOrDefault()).append(' ').append(group.newMemberAdded() ? 1 : 0)
            .append(' ').append(group.numAwaitingJoinResponse()).append(' ')
            .append(group.subscribedTopics().map(topics -> String.join(",", new TreeSet<>(topics))).orElse("~"))
            .append(" expected ").append(String.join(",", expected)).append(" unsynced ")
            .append(String.join(",", new TreeSet<>(group.allPendingSyncMembers())));
        for (ClassicGroupMember member : group.allMembers()) {
            text.append(" member ").append(member.memberId()).append(' ')
                .append(member.groupInstanceId().orElse("~")).append(' ').append(member.isAwaitingJoin() ? 1 : 0)
                .append(member.isAwaitingSync() ? 1 : 0).append(member.isNew() ? 1 : 0).append(' ')
                .append(member.sessionTimeoutMs()).append(' ').append(member.rebalanceTimeoutMs()).append(' ')
                .append(HexFormat.of().formatHex(HashOrder.sorted(member.assignment())));
            member.supportedProtocols().forEach(one -> text.append(' ').append(one.name()).append('=')
                .append(HexFormat.of().formatHex(one.metadata())));
        }
    }
}
