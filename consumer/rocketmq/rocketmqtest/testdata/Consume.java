import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;

/** Is a member of a group (2nd argument) that reads a topic (3rd) by tags (4th), until it has been given a message. */
public class Consume {
    public static void main(String[] args) throws Exception {
        CountDownLatch given = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);

        consumer.setNamesrvAddr(args[0]);
        consumer.subscribe(args[2], args[3]);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            given.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        given.await();
        consumer.shutdown();
        System.exit(0);
    }
}
