import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

// Is a member of a group, as RocketMQ's own push consumer is one, until its input ends. Every message whose body ends in 3 fails
// once; of what succeeds it prints a D and the body.
// Arguments: name server, topic, group.
public class Share {
    public static void main(String[] args) {
        try {
            share(args);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1); // else the threads of the consumer would keep the process
        }
    }

    static void share(String[] args) throws Exception {
        System.setProperty("rocketmq.client.rebalance.waitInterval", "1000"); // 20 s, which a member that has just joined waits

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            MessageExt message = batch.get(0); // a batch has one message unless it is told otherwise
            String body = new String(message.getBody(), StandardCharsets.UTF_8);

            if (body.endsWith("3") && message.getReconsumeTimes() == 0) {
                context.setDelayLevelWhenNextConsume(1);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }

            System.out.println("D " + body);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("started");

        while (System.in.read() >= 0) {}

        consumer.shutdown();
    }
}
