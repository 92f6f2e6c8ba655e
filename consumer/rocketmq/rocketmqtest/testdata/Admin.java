import org.apache.rocketmq.tools.command.MQAdminStartup;

/** Runs commands of mqadmin one after the other, which saves a virtual machine for each. Words are separated by spaces. */
public class Admin {
    public static void main(String[] args) {
        for (int i = 1; i < args.length; i++) {
            System.out.printf("%n$ %s%n", args[i]);
            MQAdminStartup.main0((args[i] + " -n " + args[0]).split(" "), null);
        }

        System.exit(0);
    }
}
