import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

// Reads a topic with RocketMQ's own push consumer and prints what it took, like the readers in Go.
// Arguments: name server, topic, group, the message from which it counts, and the last one.
public class Consume {
    static final AtomicLong seen = new AtomicLong();
    static long began, cpu;

    public static void main(String[] args) throws Exception {
        long from = Long.parseLong(args[3]);
        long to = Long.parseLong(args[4]);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullBatchSize(256);
        consumer.setConsumeMessageBatchMaxSize(256);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener(new MessageListenerConcurrently() {
            @Override
            public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> batch, ConsumeConcurrentlyContext context) {
                long now = seen.addAndGet(batch.size());
                long before = now - batch.size();
                if (before < from && now >= from) {
                    cpu = system.getProcessCpuTime();
                    began = System.nanoTime();
                }
                if (before < to && now >= to) {
                    long took = System.nanoTime() - began;
                    long used = system.getProcessCpuTime() - cpu;
                    System.out.printf(java.util.Locale.ROOT, "{\"seconds\": %.6f, \"cpu\": %.6f}%n", took / 1e9, used / 1e9);
                    System.out.flush();
                    Runtime.getRuntime().halt(0);
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
        });
        try {
            consumer.start();
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1); // else the threads of the consumer would keep the process
        }
    }
}
