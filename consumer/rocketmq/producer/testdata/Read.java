import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

// Reads a topic from its beginning and prints a line for each message. Arguments: name server, topic, number of messages.
public class Read {
    public static void main(String[] args) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("java-readers");
        consumer.setNamesrvAddr(args[0]);
        consumer.start();
        int left = Integer.parseInt(args[2]);
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(args[1])) {
            long offset = 0;
            while (left > 0) {
                PullResult result = consumer.pull(queue, "*", offset, 32);
                if (result.getPullStatus() != PullStatus.FOUND) {
                    if (offset > 0) {
                        break;
                    }
                    continue;
                }
                for (MessageExt m : result.getMsgFoundList()) {
                    String body = new String(m.getBody(), StandardCharsets.UTF_8);
                    System.out.println("got " + m.getMsgId() + " " + m.getTags() + " " + m.getKeys() + " "
                        + m.getUserProperty("p") + " " + m.getFlag() + " " + body.length() + " "
                        + body.substring(0, Math.min(8, body.length())));
                    left--;
                }
                offset = result.getNextBeginOffset();
            }
        }
        consumer.shutdown();
    }
}
